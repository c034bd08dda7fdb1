//! [`ReadError`], which `api::status` converts to the API's error responses.

/// The reason why a get, list or watch cannot read the state that it requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The history no longer contains the requested resource version.
    Compacted,
    /// The API server did not reach the `wanted` resource version in time.
    NotReached { wanted: u64, current: u64 },
    /// The `wanted` resource version is newer than the newest one in etcd.
    NotStored { wanted: u64, stored: u64 },
    /// The watch cache is being filled. `retry_after` is in seconds.
    Initializing { retry_after: u32 },
}
