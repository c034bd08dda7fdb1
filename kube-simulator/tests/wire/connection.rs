//! [`Connection`]: a raw HTTP/2 connection, for scenarios about connections or the timing of
//! requests.

use std::sync::Arc;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest, handshake};
use h2::{RecvStream, SendStream};
use http::{Method, Request, Response};
use kube::client::ConfigExt;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::server::{self, JSON, POLL_INTERVAL, Server};
use crate::target::Target;

/// A connection to the server of a scenario.
pub(crate) struct Connection {
    sender: SendRequest<Bytes>,
    origin: String,
    /// The bearer token of the user on a real server; `None` on the simulator.
    token: Option<String>,
}

impl Connection {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::open_as(server, "admin").await
    }

    /// Opens a connection as a user of the real server. The simulator has no users.
    pub(crate) async fn open_as(server: &Server, user: &str) -> Self {
        if let Some(simulator) = &server.simulator {
            let stream = connect(&simulator.url()).await;
            return Self { sender: begin(stream).await, origin: simulator.url(), token: None };
        }
        let config = server::config(server.target, "admin").await;
        let mut tls = config.rustls_client_config().expect("a configuration of TLS");
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let origin = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let host = config.cluster_url.host().expect("a host").to_owned();
        let name = host.try_into().expect("a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, connect(&origin).await).await;
        let sender = begin(stream.expect("the TLS handshake succeeds")).await;
        Self { sender, origin, token: Some(token_of(server.target, user)) }
    }

    /// Sends a request. Returns `None` if it fails, for example because of a GOAWAY.
    pub(crate) async fn get(&mut self, path: &str) -> Option<Response<RecvStream>> {
        let mut sender = self.sender.clone().ready().await.ok()?;
        let (response, _) = sender.send_request(self.request(Method::GET, path), true).ok()?;
        response.await.ok()
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn until_closed(&mut self) {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while self.get("/version").await.is_some() {
            ticks.tick().await;
        }
    }

    /// Sends the head of a request; the body follows later.
    pub(crate) async fn begin_to_post(&mut self, path: &str) -> (ResponseFuture, SendStream<Bytes>) {
        let mut sender = self.sender.clone().ready().await.expect("the connection is open");
        sender.send_request(self.request(Method::POST, path), false).expect("a request")
    }

    fn request(&self, method: Method, path: &str) -> Request<()> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.origin));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.header("content-type", JSON).body(()).expect("a request")
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> SendRequest<Bytes> {
    let (sender, connection) = handshake(stream).await.expect("the HTTP/2 handshake succeeds");
    tokio::spawn(connection);
    sender
}

async fn connect(origin: &str) -> TcpStream {
    let (_, address) = origin.split_once("://").expect("a URL");
    TcpStream::connect(address).await.expect("the server listens")
}

/// Returns the token of a user in the kubeconfig, which is JSON.
fn token_of(target: Target, user: &str) -> String {
    let path = std::env::var(target.kubeconfig()).expect("the kubeconfig was read before");
    let kubeconfig: Value =
        serde_json::from_slice(&std::fs::read(path).expect("a readable file")).expect("JSON");
    let users = kubeconfig["users"].as_array().expect("users");
    let user = users.iter().find(|known| known["name"] == user).expect("a known user");
    user["user"]["token"].as_str().expect("a token").to_owned()
}

/// Returns the object name in the next event of a watch, if there is one.
pub(crate) async fn next_name(watch: &mut RecvStream) -> Option<String> {
    let line = watch.data().await?.expect("no transport error");
    let event: Value = serde_json::from_slice(&line).ok().filter(|_| !line.is_empty())?;
    Some(event["object"]["metadata"]["name"].as_str().expect("a name").to_owned())
}
