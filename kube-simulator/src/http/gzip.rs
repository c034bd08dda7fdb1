//! Compresses response bodies, for clients that accept gzip.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};

/// Response bodies up to this size, in bytes, are not compressed, as in the real server.
///
/// The limit does not apply to watches. With `SimulatorBuilder::compress_streaming_lists`,
/// streaming lists are compressed, whatever their size, except over a WebSocket. All other watches
/// are never compressed.
pub(super) const THRESHOLD: usize = 128 * 1024;

/// Compresses all pieces of a body into one gzip member.
pub(super) fn one_stream(
    pieces: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
) -> BoxStream<'static, std::io::Result<Bytes>> {
    let state = (Box::pin(pieces), Some(encoder()));
    stream::unfold(state, |(mut pieces, encoder)| async move {
        let mut encoder = encoder?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                let compressed = encoder.write_all(&piece).map(|()| std::mem::take(encoder.get_mut()).into());
                Some((compressed, (pieces, Some(encoder))))
            }
            Some(Err(error)) => Some((Err(error), (pieces, None))),
            None => Some((encoder.finish().map(Bytes::from), (pieces, None))),
        }
    })
    .boxed()
}

/// Compresses each piece of a body into its own gzip member, so that a client can decode each piece
/// when it arrives.
pub(super) fn member_by_member(
    pieces: BoxStream<'static, std::io::Result<Bytes>>,
) -> BoxStream<'static, std::io::Result<Bytes>> {
    pieces.map(|piece| member(&piece?)).boxed()
}

fn member(piece: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = encoder();
    encoder.write_all(piece)?;
    encoder.finish().map(Bytes::from)
}

fn encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::fast())
}
