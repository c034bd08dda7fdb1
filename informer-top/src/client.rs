//! [`Client`]: reads JSON documents from an inspector over TCP or a Unix socket, without TLS.
//!
//! Each request opens a new connection, so a failure leaves no broken connection to later requests.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, HOST};
use http::uri::Authority;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::data::{Details, Overview, Text};

const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a response, in bytes. The overview of 1,000 informers is about one megabyte
/// long.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of characters of a server's error message that are shown.
const MAX_MESSAGE: usize = 300;

const SERVE_ONE: &str =
    "serve one with informer_monitor::Inspector, or pass the address of a running inspector";
const SET_TOKEN: &str = "set INFORMER_TOP_TOKEN, or pass --token-file FILE";
const USE_LOOPBACK: &str =
    "connect to localhost or 127.0.0.1, for example through port forwarding, or give the inspector a token";
const RETRY: &str = "try again, and check the log of the program that serves the inspector";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The host and the port, such as `127.0.0.1:8080`.
    Tcp(String),
    #[cfg(unix)]
    Unix(std::path::PathBuf),
}

impl Address {
    /// Parses `HOST:PORT`, `http://HOST:PORT` or, on Unix, `unix:/PATH`. The first two forms can
    /// end with the path of the inspector's page.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        #[cfg(unix)]
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Unix(path.into()));
        }
        let uri = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = uri.parse().map_err(|error| format!("{error}; use http://HOST:PORT or unix:/PATH"))?;
        if uri.scheme_str() != Some("http") {
            return Err("only http:// is supported; use port forwarding instead of TLS".to_owned());
        }
        if uri.query().is_some() {
            return Err(format!("remove the `?` and everything after it; for the token, {SET_TOKEN}"));
        }
        if !["", "/", "/inspect", "/inspect/"].contains(&uri.path()) {
            return Err("the path of an inspector is always /inspect/; use http://HOST:PORT".to_owned());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("no host; use HOST:PORT")?;
        let authority = uri.authority().map_or("", Authority::as_str);
        let port = match authority.rsplit('@').next().and_then(|text| text.strip_prefix(host)) {
            Some("") => 80,
            // `port_u16` returns `None` for an invalid port too. Such a port must not become 80, because the
            // token would go to another program.
            _ => uri.port_u16().ok_or("invalid port; use http://HOST:PORT, with a port up to 65535")?,
        };
        Ok(Self::Tcp(format!("{host}:{port}")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => write!(f, "http://{authority}"),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The reason why a document could not be read from the inspector, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The problem, such as `no inspector`.
    what: &'static str,
    pub(crate) reason: Text,
    remedy: &'static str,
}

impl Failure {
    fn new(what: &'static str, reason: &str, remedy: &'static str) -> Self {
        Self { what, reason: Text::new(reason.trim()), remedy }
    }

    /// Returns the failure for an address where no inspector answers.
    pub(crate) fn missing(reason: &str) -> Self {
        Self::new("no inspector", reason, SERVE_ONE)
    }

    /// Returns the failure for an invalid or missing response of an inspector, or of a proxy in
    /// front of it.
    fn broken(reason: &str) -> Self {
        Self::new("no valid response from the inspector", reason, RETRY)
    }

    /// Returns the message for the user.
    pub(crate) fn at(&self, address: &Address) -> String {
        format!("{} at {address}: {}; {}", self.what, &*self.reason, self.remedy)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: Address,
    /// Marked as sensitive, so that the token is not logged.
    authorization: Option<HeaderValue>,
}

impl Client {
    /// Fails if no HTTP header can contain the token.
    pub(crate) fn new(address: Address, token: Option<&str>) -> Result<Self, String> {
        let header = |token: &str| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the token has characters that no header can have; check its source")?;
            value.set_sensitive(true);
            Ok::<_, &str>(value)
        };
        Ok(Self { address, authorization: token.map(header).transpose()? })
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    pub(crate) async fn overview(&self) -> Result<Overview, Failure> {
        let body = self.get("/inspect/api/overview").await?;
        let describe = |error| format!("the response is not an inspector's overview: {error}");
        serde_json::from_slice(&body).map_err(|error| Failure::missing(&describe(error)))
    }

    pub(crate) async fn details(&self, id: &str) -> Result<Details, Failure> {
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("informer", id).finish();
        let body = self.get(&format!("/inspect/api/informer?{query}")).await?;
        serde_json::from_slice(&body).map_err(|error| Failure::broken(&format!("invalid document: {error}")))
    }

    async fn get(&self, path: &str) -> Result<Bytes, Failure> {
        let answer = async {
            match &self.address {
                Address::Tcp(authority) => {
                    let stream = TcpStream::connect(authority).await.map_err(|error| unreachable(&error))?;
                    self.exchange(stream, authority, path).await
                }
                #[cfg(unix)]
                Address::Unix(socket) => {
                    let stream = tokio::net::UnixStream::connect(socket).await;
                    let stream = stream.map_err(|error| unreachable(&error))?;
                    self.exchange(stream, "localhost", path).await
                }
            }
        };
        let limit = tokio::time::timeout(TIMEOUT, answer).await;
        limit.map_err(|_| Failure::broken(&format!("no response within {} s", TIMEOUT.as_secs())))?
    }

    /// Sends a request on a new connection, and returns the body of the response.
    async fn exchange<S>(&self, stream: S, host: &str, path: &str) -> Result<Bytes, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let request = Request::get(path).header(HOST, host).header(ACCEPT, "application/json");
        let request = self.authorization.iter().fold(request, |it, token| it.header(AUTHORIZATION, token));
        let request =
            request.body(Empty::<Bytes>::new()).map_err(|error| Failure::broken(&error.to_string()))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| no_http(&error))?;
        // The task ends when the sender and the body are dropped, which closes the connection.
        let connection = tokio::spawn(connection);
        let response = match sender.send_request(request).await {
            Ok(response) => response,
            Err(error) => {
                drop(sender);
                // If the connection failed before the request was sent, only the task returns the cause.
                let cause = connection.await.ok().and_then(Result::err);
                return Err(no_http(&cause.unwrap_or(error)));
            }
        };
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        let body =
            body.map_err(|error| Failure::broken(&format!("cannot read the response: {error}")))?.to_bytes();
        if status == StatusCode::OK { Ok(body) } else { Err(refused(status, &body)) }
    }
}

fn unreachable(error: &io::Error) -> Failure {
    // Removes the error number from the text of the operating system.
    let text = error.to_string();
    Failure::missing(text.split(" (os error").next().unwrap_or_default())
}

fn no_http(error: &hyper::Error) -> Failure {
    let cause = error.source().map(|cause| format!(": {cause}"));
    Failure::missing(&format!("no HTTP response: {error}{}", cause.unwrap_or_default()))
}

fn refused(status: StatusCode, body: &[u8]) -> Failure {
    let message: String = String::from_utf8_lossy(body).trim().chars().take(MAX_MESSAGE).collect();
    let reason = if message.is_empty() { status.to_string() } else { format!("{status}: {message}") };
    match status {
        StatusCode::UNAUTHORIZED => Failure::new("no access to the inspector", &reason, SET_TOKEN),
        StatusCode::FORBIDDEN => Failure::new("no access to the inspector", &reason, USE_LOOPBACK),
        // A server that is not an inspector can answer with an HTML page or a JSON document, which
        // is not a useful reason.
        StatusCode::NOT_FOUND if message.starts_with(['<', '{']) => Failure::missing(&status.to_string()),
        StatusCode::NOT_FOUND => Failure::missing(&reason),
        _ => Failure::broken(&reason),
    }
}
