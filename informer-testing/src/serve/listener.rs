//! The socket side: accepts connections on a loopback port and serves HTTP/1.1 on each, and a WebSocket where a watch is
//! asked for in one.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::service::Service;
use super::websocket;

/// How long a stopping server waits for clients that are slow to read their last response.
const GRACE: Duration = Duration::from_secs(2);

/// How long the port rests after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The tasks that serve a simulator's port.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    tasks: TaskTracker,
}

impl Listener {
    /// Binds a free loopback port and serves it until `stop` is cancelled.
    pub(crate) async fn start(service: Service, stop: &CancellationToken) -> std::io::Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = socket.local_addr()?;
        let tasks = TaskTracker::new();
        let accepting = accept(socket, service, stop.clone(), tasks.clone());
        tasks.spawn(accepting);
        Ok(Self { address, tasks })
    }

    /// Waits until the port is closed and no connection is left.
    pub(crate) async fn stopped(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

async fn accept(socket: TcpListener, service: Service, stop: CancellationToken, tasks: TaskTracker) {
    loop {
        let connection = tokio::select! {
            () = stop.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        match connection {
            Ok((stream, _)) => {
                tasks.spawn(serve(stream, service.clone(), stop.clone(), tasks.clone()));
            }
            // Out of file descriptors, or a client that gave up: the next one may fare better.
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, service: Service, stop: CancellationToken, tasks: TaskTracker) {
    // Watch events are small and must not wait for one another.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let talks = stop.clone();
    let service = service_fn(move |request| {
        let (answer, tasks, stop) =
            (websocket::answer(service.clone(), request), tasks.clone(), talks.clone());
        async move {
            let (response, conversation) = answer.await?;
            if let Some(conversation) = conversation {
                tasks.spawn(within_grace(conversation.hold(), stop));
            }
            std::io::Result::Ok(response)
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// Lets a conversation come to its end, which it does soon after the server stops if its client reads.
async fn within_grace(conversation: impl Future<Output = ()>, stop: CancellationToken) {
    let mut conversation = std::pin::pin!(conversation);
    tokio::select! {
        () = conversation.as_mut() => {}
        () = stop.cancelled() => {
            let _ = tokio::time::timeout(GRACE, conversation).await;
        }
    }
}
