//! [`HeadLimit`]: a connection whose client has limited time to send the head of a request.
//!
//! Counterpart: `ReadHeaderTimeout` of Go's `http.Server`, which kube-apiserver sets to 32 seconds.
//! Idle time between requests is not limited. If the first part of a head arrives with the body of
//! the previous request, the limit begins only with the next byte. On HTTP/2, each header block,
//! and each frame except `DATA`, must arrive within the limit. By contrast, Go limits on HTTP/2
//! only the start of the connection, and the idle time to 90 seconds.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::frames::{Frames, PREFACE};

/// Maximum time from the first byte of a request head to its last byte, and for a TLS handshake.
/// For the first head, the time begins with the connection, or after its TLS handshake.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(32);

/// A state of [`Progress`]: the client is sending the head of a request, or has not begun its first
/// request.
const READING: u8 = 0;
/// A state of [`Progress`]: the head of a request has arrived, and the response is not ready.
const BUSY: u8 = 1;
/// A state of [`Progress`]: the response to a request without a body is ready.
///
/// All bytes after the blank line that ends this request belong to the next head, including bytes
/// that arrived together with this request. The time limit of the next head begins when the server
/// reads from the connection in this state and such bytes have arrived.
const AFTER_HEAD: u8 = 2;
/// A state of [`Progress`]: the response to a request with a body is ready.
///
/// Only bytes that arrive in this state count as the next head. The first of these bytes begins the
/// time limit of the next head.
const AFTER_BODY: u8 = 3;
/// A state of [`Progress`]: the connection is now a WebSocket. No other state follows this state.
const UNLIMITED: u8 = 4;

/// The state of an HTTP/1.1 connection. Clones share the state. Only the state `READING` limits the
/// time. HTTP/2 connections use [`Frames`] instead.
#[derive(Clone, Debug)]
pub(super) struct Progress(Arc<AtomicU8>);

/// A stream whose reads fail when the head of a request takes too long.
#[derive(Debug)]
pub(super) struct HeadLimit<S> {
    stream: S,
    progress: Progress,
    deadline: Pin<Box<Sleep>>,
    /// A count of the line breaks at the end of the bytes that have arrived, which can be too high.
    /// From 2 on, these bytes end with a blank line. Used only on HTTP/1.1.
    line_breaks: usize,
    /// The rest of HTTP/2's preface, which has not arrived yet. `None` on HTTP/1.1, where the first
    /// bytes of the connection differ from the preface.
    missing_preface: Option<&'static [u8]>,
    /// How much of the current HTTP/2 frame and header block has arrived. `None` on HTTP/1.1, and
    /// while the preface is incomplete.
    frames: Option<Frames>,
}

impl Progress {
    /// Sets the state to `BUSY`: the head of a request has arrived.
    pub(super) fn begin_request(&self) {
        self.advance(BUSY);
    }

    /// Sets the state to `AFTER_HEAD` or `AFTER_BODY`: the response is ready. `had_body` says
    /// whether the request had a body.
    pub(super) fn end_request(&self, had_body: bool) {
        self.advance(if had_body { AFTER_BODY } else { AFTER_HEAD });
    }

    pub(super) fn lift_limit(&self) {
        self.advance(UNLIMITED);
    }

    fn advance(&self, to: u8) {
        let change = |now| (now != UNLIMITED).then_some(to);
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }

    fn state(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> HeadLimit<S> {
    pub(super) fn new(stream: S) -> (Self, Progress) {
        let progress = Progress(Arc::new(AtomicU8::new(READING)));
        let deadline = Box::pin(sleep(HEAD_TIMEOUT));
        let limit = Self {
            stream,
            progress: progress.clone(),
            deadline,
            line_breaks: 0,
            missing_preface: Some(PREFACE),
            frames: None,
        };
        (limit, progress)
    }

    /// Processes `arrived`, the bytes of one read. Returns whether the time until the next read is
    /// limited.
    fn take(&mut self, mut arrived: &[u8]) -> bool {
        if self.frames.is_none()
            && let Some(rest) = self.after_preface(arrived)
        {
            self.frames = Some(Frames::default());
            arrived = rest;
        }
        let begins = match &mut self.frames {
            Some(frames) => frames.take(arrived),
            None => self.begins_head(arrived),
        };
        let is_limited = match &self.frames {
            Some(frames) => frames.is_incomplete(),
            None => self.progress.state() == READING,
        };
        if begins && is_limited {
            self.deadline.as_mut().reset(Instant::now() + HEAD_TIMEOUT);
        }
        is_limited
    }

    /// Returns whether the client has begun the next head of an HTTP/1.1 connection. If so, sets
    /// the state to `READING`.
    fn begins_head(&mut self, arrived: &[u8]) -> bool {
        for byte in &arrived[arrived.len().saturating_sub(b"\r\n\r\n".len())..] {
            match byte {
                b'\n' => self.line_breaks += 1,
                b'\r' => {}
                _ => self.line_breaks = 0,
            }
        }
        let begins = match self.progress.state() {
            // hyper can hold a part of the head that arrived with the previous request.
            AFTER_HEAD => self.line_breaks < 2,
            // The end of the body is unknown here, so earlier bytes do not count as the next head.
            AFTER_BODY => !arrived.is_empty(),
            _ => false,
        };
        if begins {
            self.progress.advance(READING);
        }
        begins
    }

    /// Returns the part of `arrived`, the bytes of one read, that follows HTTP/2's preface. Returns
    /// `None` while the preface is incomplete, and on HTTP/1.1.
    fn after_preface<'b>(&mut self, arrived: &'b [u8]) -> Option<&'b [u8]> {
        let missing = self.missing_preface?;
        let (part, rest) = arrived.split_at(missing.len().min(arrived.len()));
        self.missing_preface = missing.strip_prefix(part);
        self.missing_preface?.is_empty().then_some(rest)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let is_limited = self.take(&buffer.filled()[before..]);
        if is_limited && read.is_pending() && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the limit on HTTP/2 connections.

    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::{HeadLimit, PREFACE};

    /// A `SETTINGS` frame without settings, the first frame of a client.
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

    #[tokio::test(start_paused = true)]
    async fn preface_in_two_parts_begins_an_http_2_connection() {
        let (mut client, server) = duplex(64);
        let (mut server, _) = HeadLimit::new(server);
        let (first, second) = PREFACE.split_at(10);
        let mut buffer = [0; 64];
        for part in [first, second, SETTINGS] {
            client.write_all(part).await.unwrap();
            assert_eq!(server.read(&mut buffer).await.unwrap(), part.len());
        }
        let read = timeout(Duration::from_secs(300), server.read(&mut buffer)).await;
        assert!(read.is_err(), "an idle HTTP/2 connection must stay open: {read:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn each_http_2_frame_has_its_own_time_limit() {
        let (mut client, server) = duplex(64);
        let (mut server, _) = HeadLimit::new(server);
        let (first_half, second_half) = SETTINGS.split_at(4);
        let mut buffer = [0; 64];
        client.write_all(&[PREFACE, first_half].concat()).await.unwrap();
        assert_eq!(server.read(&mut buffer).await.unwrap(), PREFACE.len() + first_half.len());
        for _ in 0..10 {
            let read = timeout(Duration::from_secs(10), server.read(&mut buffer)).await;
            assert!(read.is_err(), "the connection of a timely client must stay open: {read:?}");
            client.write_all(&[second_half, first_half].concat()).await.unwrap();
            assert_eq!(server.read(&mut buffer).await.unwrap(), SETTINGS.len());
        }
    }
}
