//! [`Gunzip`]: decompresses gzip incrementally, with flate2 on zlib-rs.
//!
//! Note: a gzip body can have several members. From Kubernetes 1.37 on, a streaming list has one
//! member for each flush (feature gate `WatchListCompression`), so a decoder that stops after the
//! first member would return a single event.

use flate2::{Decompress, DecompressError, FlushDecompress, Status};
use informer_core::ListWatchError;

/// The maximum output of one call of [`Gunzip::inflate`], in bytes. A few bytes of input can expand
/// to much more.
const MAX_OUTPUT: usize = 64 * 1024;

/// The base-two logarithm of gzip's largest window.
const WINDOW_BITS: u8 = 15;

pub(super) struct Gunzip {
    /// The decoder of the current gzip member. `None` between two members, so that a watch that is
    /// idle then keeps no decompression window in memory.
    member: Option<Decompress>,
    output: Vec<u8>,
    /// Whether the output is full and the member has not ended. If so, [`inflate`](Self::inflate)
    /// can produce more output without new input.
    is_full: bool,
}

impl Gunzip {
    pub(super) fn new() -> Self {
        Self { member: None, output: Vec::new(), is_full: false }
    }

    /// Decompresses `input` until it is consumed or the output has 64 KiB. Returns the number of
    /// consumed bytes.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if `input` is not valid gzip. Do not use the decoder after an
    /// error.
    pub(super) fn inflate(&mut self, input: &[u8]) -> Result<usize, ListWatchError> {
        self.output.clear();
        let mut used = 0;
        while used < input.len() || self.is_full {
            if self.output.capacity() < MAX_OUTPUT {
                self.output.reserve_exact(MAX_OUTPUT);
            }
            let member = self.member.get_or_insert_with(|| Decompress::new_gzip(WINDOW_BITS));
            let before = (member.total_in(), member.total_out());
            let status = member
                .decompress_vec(&input[used..], &mut self.output, FlushDecompress::None)
                .map_err(|error| not_gzip(&error))?;
            let (read, written) = (member.total_in() - before.0, member.total_out() - before.1);
            used += usize::try_from(read).unwrap_or(usize::MAX);
            self.is_full = self.output.len() == self.output.capacity();
            if status == Status::StreamEnd {
                self.member = None;
                self.is_full = false;
            }
            if self.output.len() == self.output.capacity() || (read == 0 && written == 0) {
                break;
            }
        }
        Ok(used)
    }

    /// Returns the bytes that the last call of [`inflate`](Self::inflate) decompressed.
    pub(super) fn output(&self) -> &[u8] {
        &self.output
    }

    /// Returns [`ListWatchError::Interrupted`] if the body ended within a gzip member.
    pub(super) fn check_end(&self) -> Result<(), ListWatchError> {
        match self.member {
            None => Ok(()),
            Some(_) => Err(ListWatchError::Interrupted("the gzip body is truncated".into())),
        }
    }
}

fn not_gzip(error: &DecompressError) -> ListWatchError {
    let detail = error.message().unwrap_or("bad data");
    ListWatchError::Protocol(format!("the body is not valid gzip, contrary to its header: {detail}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("a write to memory");
        encoder.finish().expect("a write to memory")
    }

    #[test]
    fn decompression_bomb_is_inflated_in_bounded_steps() -> Result<(), ListWatchError> {
        let compressed = gzip(&vec![b' '; 8 * 1024 * 1024]);
        assert!(compressed.len() < 10_000, "{} bytes", compressed.len());
        let (mut gunzip, mut rest, mut total) = (Gunzip::new(), &compressed[..], 0);
        loop {
            rest = &rest[gunzip.inflate(rest)?..];
            assert!(gunzip.output().len() <= MAX_OUTPUT && gunzip.output.capacity() <= 2 * MAX_OUTPUT);
            total += gunzip.output().len();
            if gunzip.output().is_empty() {
                break;
            }
        }
        assert_eq!((rest.len(), total), (0, 8 * 1024 * 1024));
        gunzip.check_end()
    }

    #[test]
    fn many_empty_gzip_members_are_consumed() -> Result<(), ListWatchError> {
        let members = gzip(b"").repeat(1000);
        let mut gunzip = Gunzip::new();
        assert_eq!(gunzip.inflate(&members)?, members.len());
        assert!(gunzip.output().is_empty());
        gunzip.check_end()
    }
}
