//! [`ReadError`]: the reasons why a state cannot be read. `api::status` turns them into answers.

/// The reason why a state cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The history no longer reaches back to the resource version.
    Compacted,
    /// The watch cache has not reached the resource version in time.
    NotReached { wanted: u64, current: u64 },
    /// The resource version is newer than the newest one in etcd.
    NotStored { wanted: u64, stored: u64 },
    /// The watch cache is being filled. `retry_after` is in seconds.
    Initializing { retry_after: u32 },
}
