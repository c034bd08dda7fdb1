//! [`Tls`]: a certificate for loopback addresses, and the TLS handshake, which also selects
//! HTTP/1.1 or HTTP/2.

use std::io;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The subject alternative names of the certificate.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    certificate: CertificateDer<'static>,
    pem: Arc<str>,
}

impl Tls {
    /// Creates a self-signed certificate.
    pub(crate) fn new() -> io::Result<Self> {
        let made = generate_simple_self_signed(NAMES.map(str::to_owned)).map_err(io::Error::other)?;
        let CertifiedKey { cert, signing_key } = made;
        let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, certificate: cert.der().clone(), pem: cert.pem().into() })
    }

    pub(crate) fn der(&self) -> &[u8] {
        &self.certificate
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
