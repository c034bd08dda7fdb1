//! A minimal client for the requests during the start of a control plane. It does not use the
//! library's client, because the tests on this control plane test that client.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use super::credentials::Credentials;

/// Timeout of each read and each write of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A client that sends requests to the API server as the user `admin`.
#[derive(Debug)]
pub(crate) struct Client {
    port: u16,
    token: String,
    tls: Arc<ClientConfig>,
}

/// The status code and the body of a response.
type Response = (u16, String);

impl Client {
    pub(crate) fn new(port: u16, credentials: &Credentials) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(credentials.ca_der.clone()).context("the CA's certificate is not usable")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("this build of rustls supports no TLS version")?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { port, token: credentials.admin_token.clone(), tls: Arc::new(tls) })
    }

    /// Returns whether a GET succeeds; `false` if the server cannot be reached, as during its
    /// start.
    pub(crate) fn has(&self, path: &str) -> bool {
        matches!(self.request("GET", path, ""), Ok((200, _)))
    }

    /// Returns whether the server is ready, and has the namespace `default`, which it creates at
    /// its start.
    pub(crate) fn is_ready(&self) -> bool {
        self.has("/readyz") && self.has("/api/v1/namespaces/default")
    }

    /// Sends a GET. Fails if the status is not 200.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        let (status, body) = self.request("GET", path, "")?;
        if status != 200 {
            bail!("GET {path} failed with status {status}: {body}");
        }
        serde_json::from_str(&body).with_context(|| format!("GET {path} did not return JSON"))
    }

    /// Sends a POST. Fails if the status is not 201.
    pub(crate) fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        let (status, body) = self.request("POST", path, &object.to_string())?;
        if status != 201 {
            bail!("POST {path} failed with status {status}: {body}");
        }
        Ok(())
    }

    fn request(&self, method: &str, path: &str, body: &str) -> anyhow::Result<Response> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let connection = ClientConnection::new(Arc::clone(&self.tls), name)?;
        let mut stream = StreamOwned::new(connection, socket);
        // HTTP/1.0: the response is not chunked, and its end is the end of the connection.
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\n\
             Host: 127.0.0.1\r\n\
             Authorization: Bearer {}\r\n\
             Accept: application/json\r\n\
             Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len(),
        )?;
        let mut response = Vec::new();
        match stream.read_to_end(&mut response) {
            // The end of the connection ends the response even without a TLS close alert.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            result => drop(result?),
        }
        parse(&String::from_utf8_lossy(&response))
    }
}

fn parse(response: &str) -> anyhow::Result<Response> {
    let (head, body) = response.split_once("\r\n\r\n").context("the response has incomplete headers")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let status = status.parse().with_context(|| format!("the response has no status code: {head}"))?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_split_into_status_and_body() {
        let response = "HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nno\r\n\r\nway";
        assert_eq!(parse(response).expect("well formed"), (403, "no\r\n\r\nway".to_owned()));
    }

    #[test]
    fn malformed_response_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse("SSH-2.0-OpenSSH\r\n\r\n").is_err());
    }
}
