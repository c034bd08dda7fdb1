//! [`Server`]: replays a recording over HTTP/1.1 without TLS. The server has only pods, and ignores
//! selectors and resource versions in requests.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::time::{ClockId, clock_gettime};

use super::forms::Encoding;
use super::objects::Objects;
use super::web_socket;
use crate::process::wait_until;
use crate::signals::Signals;

/// At full speed, events are written in blocks of about this size in bytes, which is smaller than
/// the kernel's buffer for a connection.
const BLOCK: usize = 64 * 1024;

const PODS: &str = "/api/v1/pods";

/// The maximum wait until a batch of events is sent.
const DEADLINE: Duration = Duration::from_secs(600);

/// Recorded events to send in the client's watch: their indexes and their rate.
#[derive(Debug)]
struct Batch {
    events: Range<usize>,
    /// Events per second; `None` for full speed.
    rate: Option<u32>,
}

/// A server that replays recorded responses to one client. After it is dropped, the client's watch
/// ends as soon as all pending events are sent.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    batches: Sender<Batch>,
    sent: Receiver<anyhow::Result<Vec<u64>>>,
}

impl Server {
    pub(crate) fn start(objects: Objects) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on 127.0.0.1")?;
        let port = listener.local_addr()?.port();
        let (batches, next_batch) = mpsc::channel();
        let (times, sent) = mpsc::channel();
        let replay = Arc::new(Replay { objects, batches: Mutex::new(next_batch), times });
        // The thread waits for connections until the process ends.
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let replay = Arc::clone(&replay);
                std::thread::spawn(move || replay.serve(&connection));
            }
        });
        Ok(Self { port, batches, sent })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts to send recorded events in the client's watch. `rate` is in events per second;
    /// `None` means full speed.
    pub(crate) fn send(&self, events: Range<usize>, rate: Option<u32>) -> anyhow::Result<()> {
        self.batches
            .send(Batch { events, rate })
            .context("cannot send events, because the replaying server has panicked; see its message above")
    }

    /// Waits until the server has sent a batch of events. Returns their send times in nanoseconds.
    /// For a late event, returns its due time.
    ///
    /// Call this once after each [`send`](Self::send) that has a rate.
    pub(crate) fn sent(&self, signals: &Signals) -> anyhow::Result<Vec<u64>> {
        let mut sent = None;
        wait_until(signals, DEADLINE, || {
            sent = self.sent.try_recv().ok();
            Ok(sent.is_some())
        })?;
        sent.context("cannot send the events: the client has no watch, or does not read its watch")?
            .context("cannot send the events; if the client has ended, its message is above")
    }
}

/// The state that all connections of the replaying server share.
#[derive(Debug)]
struct Replay {
    objects: Objects,
    batches: Mutex<Receiver<Batch>>,
    /// Receives one result for each batch of events that is sent at a fixed rate: the send times of
    /// the events, in nanoseconds.
    times: Sender<anyhow::Result<Vec<u64>>>,
}

impl Replay {
    fn serve(&self, connection: &TcpStream) {
        // An I/O error means that the client has ended, or has closed the connection.
        if let Err(error) = self.answer(connection)
            && !error.is::<std::io::Error>()
        {
            eprintln!("the replaying server cannot answer: {error:#}");
        }
    }

    fn answer(&self, mut connection: &TcpStream) -> anyhow::Result<()> {
        let request = Request::read(connection)?;
        connection.set_nodelay(true)?;
        let media_type = self.objects.encoding().media_type();
        if request.path != PODS || !request.accepts(self.objects.encoding()) {
            connection.write_all(b"HTTP/1.1 406 Not Acceptable\r\nContent-Length: 0\r\n\r\n")?;
            bail!(
                "unexpected path or media type in a request for {}?{} with Accept {:?}",
                request.path,
                request.query,
                request.accept
            );
        }
        let is_watch = request.has("watch", &["1", "true"]);
        if let Some(key) = &request.web_socket_key {
            connection.write_all(web_socket::accept(key).as_bytes())?;
        } else {
            let stream = if is_watch { ";stream=watch" } else { "" };
            // Without a `Content-Length`, the body ends with the connection.
            write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Type: {media_type}{stream}\r\nConnection: close\r\n\r\n"
            )?;
        }
        if !is_watch {
            return Ok(connection.write_all(self.objects.list()?)?);
        }
        let mut watch =
            Watch { connection, is_web_socket: request.web_socket_key.is_some(), block: Vec::new() };
        if request.has("sendInitialEvents", &["1", "true"]) {
            self.send_initial(&mut watch)?;
        }
        while let Some(batch) = self.next_batch() {
            match batch.rate {
                None => self.send_at_full_speed(&mut watch, batch.events)?,
                Some(rate) => self.times.send(self.send_at_rate(&mut watch, batch.events, rate))?,
            }
        }
        Ok(())
    }

    fn next_batch(&self) -> Option<Batch> {
        self.batches.lock().ok()?.recv().ok()
    }

    fn send_initial(&self, watch: &mut Watch<'_>) -> anyhow::Result<()> {
        for index in 0..self.objects.len() {
            watch.add(|block| self.objects.append(index, block));
            watch.write_full()?;
        }
        watch.add(|block| block.extend_from_slice(self.objects.bookmark()));
        watch.write()
    }

    fn send_at_full_speed(&self, watch: &mut Watch<'_>, events: Range<usize>) -> anyhow::Result<()> {
        for index in events {
            watch.add(|block| block.extend_from_slice(self.objects.event(index)));
            watch.write_full()?;
        }
        watch.write()
    }

    /// Sends `rate` events per second. Returns their send times in nanoseconds. For a late event,
    /// returns its due time.
    fn send_at_rate(
        &self,
        watch: &mut Watch<'_>,
        events: Range<usize>,
        rate: u32,
    ) -> anyhow::Result<Vec<u64>> {
        let (start, mut times) = (now(), Vec::with_capacity(events.len()));
        for (count, index) in events.enumerate() {
            watch.add(|block| block.extend_from_slice(self.objects.event(index)));
            let due = start + count as u64 * 1_000_000_000 / u64::from(rate);
            let mut time = now();
            let is_late = time >= due;
            while time < due {
                std::thread::park_timeout(Duration::from_nanos(due - time));
                time = now();
            }
            // With its due time, the measured latency of a late event includes the delay.
            times.push(if is_late { due } else { time });
            watch.write()?;
        }
        Ok(times)
    }
}

/// Returns the time of the machine's monotonic clock, in nanoseconds. All processes share this clock,
/// so that times from the server and from a client can be compared.
fn now() -> u64 {
    let time = Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The connection of a watch, with the bytes that are not written yet.
struct Watch<'a> {
    connection: &'a TcpStream,
    is_web_socket: bool,
    block: Vec<u8>,
}

impl Watch<'_> {
    /// Adds one encoded event to the buffer. The closure `write_event` receives the buffer, and
    /// appends the event's bytes. For a WebSocket, `add` puts a WebSocket frame around the event.
    fn add(&mut self, write_event: impl FnOnce(&mut Vec<u8>)) {
        let start = self.block.len();
        write_event(&mut self.block);
        if self.is_web_socket {
            web_socket::frame(&mut self.block, start);
        }
    }

    /// Writes the buffered bytes if there are at least [`BLOCK`] of them.
    fn write_full(&mut self) -> anyhow::Result<()> {
        if self.block.len() < BLOCK { Ok(()) } else { self.write() }
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.connection.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

/// The parts of an HTTP request that the server reads.
#[derive(Debug, Default, PartialEq)]
struct Request {
    path: String,
    query: String,
    accept: String,
    /// The header `Sec-WebSocket-Key` of a request that starts a WebSocket, as fabric8 does for a
    /// watch.
    web_socket_key: Option<String>,
}

impl Request {
    fn read(connection: impl std::io::Read) -> anyhow::Result<Self> {
        let mut lines = BufReader::new(connection).lines();
        let first = lines.next().context("the request is empty")??;
        let target = first.split(' ').nth(1).context("the request has no target")?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self { path: path.to_owned(), query: query.to_owned(), ..Self::default() };
        for line in lines {
            let line = line?;
            if line.is_empty() {
                return Ok(request);
            }
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("accept") => {
                    value.trim().clone_into(&mut request.accept);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("sec-websocket-key") => {
                    request.web_socket_key = Some(value.trim().to_owned());
                }
                _ => {}
            }
        }
        bail!("the request has incomplete headers")
    }

    fn accepts(&self, encoding: Encoding) -> bool {
        // Without an `Accept` header, a server sends JSON. kube-rs and fabric8 send no such header for a watch.
        let is_default = self.accept.is_empty() && encoding == Encoding::Json;
        is_default || self.accept.contains(encoding.media_type())
    }

    /// Returns whether the query parameter `name` has one of `values`.
    fn has(&self, name: &str, values: &[&str]) -> bool {
        let parameters = self.query.split('&').filter_map(|parameter| parameter.split_once('='));
        parameters.into_iter().any(|(other, value)| other == name && values.contains(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_has_path_query_and_accept() {
        let text = b"GET /api/v1/pods?watch=true&limit=5 HTTP/1.1\r\nHost: a\r\naccept: a/b, c/d\r\n\r\n";
        let request = Request::read(&text[..]).expect("well formed");
        assert_eq!((request.path.as_str(), request.accept.as_str()), (PODS, "a/b, c/d"));
        assert!(request.has("watch", &["1", "true"]) && !request.has("limit", &["1"]));
        assert!(!request.accepts(Encoding::Json));
        assert_eq!(request.web_socket_key, None);
    }

    #[test]
    fn request_has_the_key_of_a_web_socket() {
        let text = b"GET /api/v1/pods HTTP/1.1\r\nupgrade: websocket\r\nsec-websocket-key: a==\r\n\r\n";
        let request = Request::read(&text[..]).expect("well formed");
        assert_eq!(request.web_socket_key.as_deref(), Some("a=="));
        assert!(request.accepts(Encoding::Json) && !request.accepts(Encoding::Protobuf));
    }
}
