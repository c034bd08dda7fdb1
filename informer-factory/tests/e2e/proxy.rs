//! [`Proxy`]: a TCP proxy in front of the server that simulates network failures on demand.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::{client, config};

/// The interval at which a slow proxy forwards a chunk.
const TICK: Duration = Duration::from_millis(100);

/// Forwards connections to the server while the proxy is up.
pub(crate) struct Proxy {
    address: SocketAddr,
    link: Link,
    /// Reserves the port while no listener uses it.
    _port: TcpSocket,
    up: Option<(DropGuard, JoinHandle<()>)>,
}

/// The shared state of a proxy's tasks.
#[derive(Clone)]
struct Link {
    server: SocketAddr,
    /// The number of bytes that a client receives per second; `None` for no limit.
    rate: Option<usize>,
    accepted: Arc<Mutex<Vec<Accepted>>>,
}

struct Accepted {
    client_port: u16,
    swallowed: CancellationToken,
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        Self::limited(None).await
    }

    /// Starts a proxy whose clients receive this number of bytes per second.
    pub(crate) async fn slow(bytes: usize) -> Self {
        Self::limited(Some(bytes)).await
    }

    async fn limited(rate: Option<usize>) -> Self {
        let url = config("admin").await.cluster_url;
        let port = url.port_u16().expect("the server's URL has a port");
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let reserved = socket_on((Ipv4Addr::LOCALHOST, 0).into());
        let address = reserved.local_addr().expect("the socket is bound");
        let link = Link { server, rate, accepted: Arc::default() };
        let mut proxy = Self { address, link, _port: reserved, up: None };
        proxy.come_up();
        proxy
    }

    /// Returns a client of [`connect`](informer_factory::connect) with all permissions, which uses
    /// this proxy.
    pub(crate) async fn client(&self) -> Client {
        let mut config = config("admin").await;
        config.cluster_url = format!("https://{}", self.address).parse().expect("the URL is valid");
        client(config)
    }

    /// Accepts connections from now on.
    pub(crate) fn come_up(&mut self) {
        let listener = socket_on(self.address).listen(1024).expect("the proxy has reserved the port");
        let up = CancellationToken::new();
        let accepting = tokio::spawn(self.link.clone().accept(listener, up.clone()));
        self.up = Some((up.drop_guard(), accepting));
    }

    /// Closes all connections, and refuses new ones.
    pub(crate) async fn go_down(&mut self) {
        let (up, accepting) = self.up.take().expect("the proxy is up");
        drop(up);
        accepting.await.expect("no panic");
    }

    /// Discards all further data of the existing connections. They stay open, and new connections
    /// work.
    pub(crate) fn swallow(&self) {
        self.link.accepted.lock().iter().for_each(|accepted| accepted.swallowed.cancel());
    }

    /// Returns the port to which clients connect.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the clients' ports of all connections so far, the latest last.
    pub(crate) fn client_ports(&self) -> Vec<u16> {
        self.link.accepted.lock().iter().map(|accepted| accepted.client_port).collect()
    }
}

impl Link {
    async fn accept(self, listener: TcpListener, up: CancellationToken) {
        while let Some(accepted) = up.run_until_cancelled(listener.accept()).await {
            let (client, from) = accepted.expect("the connection is accepted");
            let swallowed = CancellationToken::new();
            let accepted = Accepted { client_port: from.port(), swallowed: swallowed.clone() };
            self.accepted.lock().push(accepted);
            let (link, up) = (self.clone(), up.clone());
            tokio::spawn(async move {
                // A connection that fails is closed on both sides.
                _ = up.run_until_cancelled(link.forward(client, swallowed)).await;
            });
        }
    }

    async fn forward(&self, mut client: TcpStream, swallowed: CancellationToken) -> io::Result<()> {
        let mut server = TcpStream::connect(self.server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        let forwarded = async {
            tokio::select! {
                done = copy(&mut from_client, &mut to_server) => done.map(drop),
                done = self.answer(&mut from_server, &mut to_client) => done,
            }
        };
        match swallowed.run_until_cancelled(forwarded).await {
            Some(done) => done,
            // Both sockets stay open, and the kernel acknowledges the data that they receive.
            None => pending().await,
        }
    }

    async fn answer(&self, server: &mut ReadHalf<'_>, client: &mut WriteHalf<'_>) -> io::Result<()> {
        let Some(rate) = self.rate else { return copy(server, client).await.map(drop) };
        let mut piece = vec![0; rate * TICK.as_millis() as usize / 1_000];
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match server.read(&mut piece).await? {
                0 => return Ok(()),
                length => client.write_all(&piece[..length]).await?,
            }
        }
    }
}

/// Returns a socket that shares its port with other sockets of this process.
fn socket_on(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("the socket is created");
    #[cfg(unix)]
    socket.set_reuseport(true).expect("a port can be shared");
    socket.bind(address).expect("a free port");
    socket
}
