//! [`Listener`]: serves HTTP on a loopback port, with TLS if configured.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::header::CONNECTION;
use http::{Request, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::head_limit::{HEAD_TIMEOUT, HeadLimit, Progress};
use super::respond::HttpResponse;
use super::service::Service;
use super::websocket;

/// How long a stopping server waits for requests in flight, and for clients that are slow to read
/// their last response.
const GRACE: Duration = Duration::from_secs(2);

/// The pause after a failure to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of concurrent requests on one HTTP/2 connection, as in the real server.
const MAX_STREAMS: u32 = 100;

#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds a free loopback port and serves it until the server stops.
    pub(crate) async fn start(service: Service) -> io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let tasks = TaskTracker::new();
        let port = Port { stop: service.server.api.stop.clone(), service, tasks: tasks.clone() };
        tasks.spawn(port.accept(socket));
        Ok(Self { address, tasks })
    }

    /// Waits until the port is closed and all connections have ended.
    pub(crate) async fn stopped(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The state that all connections of a port share.
#[derive(Clone)]
struct Port {
    service: Service,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Port {
    async fn accept(self, socket: TcpListener) {
        loop {
            let connection = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = socket.accept() => accepted,
            };
            match connection {
                Ok((stream, _)) => {
                    self.tasks.spawn(self.clone().serve_connection(stream));
                }
                // The process is out of file descriptors, or the client has disconnected. The next
                // connection may succeed.
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection; the simulator retries");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn serve_connection(self, stream: TcpStream) {
        // Watch events are small; Nagle's algorithm would delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "failed to set TCP_NODELAY on the connection of a client");
        }
        let Some(tls) = self.service.server.tls.clone() else { return self.serve(stream).await };
        let secured = tokio::select! {
            secured = timeout(HEAD_TIMEOUT, tls.accept(stream)) => secured,
            () = self.stop.cancelled() => return,
        };
        match secured.map_err(io::Error::from).and_then(|secured| secured) {
            Ok(stream) => self.serve(stream).await,
            Err(error) => tracing::debug!(%error, "TLS handshake with a client failed"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let leave = self.service.server.goaways.new_connection();
        let (stream, progress) = HeadLimit::new(stream);
        let context = ConnectionContext { port: self.clone(), leave: leave.clone(), progress };
        let service = service_fn(move |request| context.clone().answer(request));
        let mut builder = auto::Builder::new(Tracked(self.tasks.clone()));
        builder.http2().max_concurrent_streams(MAX_STREAMS);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut is_leaving = false;
        let outcome = loop {
            tokio::select! {
                // The connection is polled first, so that bytes that arrived before a shutdown are
                // read.
                biased;
                outcome = connection.as_mut() => break outcome,
                () = self.stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    break timeout(GRACE, connection).await.unwrap_or(Ok(()));
                }
                // Requests in progress continue without a time limit.
                () = leave.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(%error, "the connection of a client ended with an error");
        }
    }
}

#[derive(Clone)]
struct ConnectionContext {
    port: Port,
    /// Cancelled when this connection must accept no more requests. On HTTP/2, the server then
    /// sends a `GOAWAY`.
    leave: CancellationToken,
    progress: Progress,
}

impl ConnectionContext {
    async fn answer(self, request: Request<Incoming>) -> io::Result<HttpResponse> {
        let Self { port, leave, progress } = self;
        let is_http_2 = request.version() == Version::HTTP_2;
        let has_body = !request.body().is_end_stream();
        progress.begin_request();
        let is_last = is_http_2 && port.service.server.goaways.draw();
        let (mut response, websocket_watch) = websocket::answer(port.service, request).await?;
        progress.end_request(has_body);
        if let Some(websocket_watch) = websocket_watch {
            progress.lift_limit();
            port.tasks.spawn(within_grace(websocket_watch.send_events(), port.stop));
        }
        // As in Go, HTTP/2 sends `GOAWAY` instead of the header `Connection: close`.
        if is_http_2 && (response.headers_mut().remove(CONNECTION).is_some() || is_last) {
            leave.cancel();
        }
        Ok(response)
    }
}

/// Runs hyper's HTTP/2 tasks, so that [`Listener::stopped`] waits for them.
#[derive(Clone)]
struct Tracked(TaskTracker);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tracked {
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

/// Runs a WebSocket watch until it ends, or until [`GRACE`] after the server stops.
async fn within_grace(websocket_watch: impl Future<Output = ()>, stop: CancellationToken) {
    let mut websocket_watch = std::pin::pin!(websocket_watch);
    tokio::select! {
        () = websocket_watch.as_mut() => {}
        () = stop.cancelled() => {
            let _ = timeout(GRACE, websocket_watch).await;
        }
    }
}
