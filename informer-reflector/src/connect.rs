//! [`connect`]: creates a client that closes a dead connection after 30 seconds.
//!
//! client-go uses HTTP/2 pings. kube's connectors support HTTP/1.1 only, so this function uses TCP
//! keepalive.

use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tokio::time::timeout;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time without data before the first TCP keepalive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The number of unanswered probes after which the kernel closes the connection.
const KEEPALIVE_RETRIES: u32 = 3;

/// The time for which sent data can stay unacknowledged before the kernel closes the connection
/// (Linux, Android and Fuchsia only).
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// The time after which an idle connection is not reused, because it can be dead.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns a client for informers. It differs from `Client::try_from(config)`:
///
/// - A dead connection is closed after 30 seconds, by TCP keepalive and, on Linux, a limit for
///   unacknowledged data. With kube's client, a watch on a dead connection stays open until its
///   [idle timeout](crate::ReflectorConfig::watch_idle_timeout).
/// - A connection that was idle for 20 seconds is not reused, because it can be dead.
/// - Connecting times out after 10 seconds, or earlier if `config.connect_timeout` is shorter. This
///   time includes name resolution and the TLS handshake.
/// - kube's retry layer is not used, even if `config.default_retry` is set, so that the reflector's
///   backoff counts all failures.
/// - kube's tracing layer, which logs each transport error and each 5xx response as an error, is
///   not used.
///
/// `tls` creates the connector for encrypted connections, because the program chooses the TLS
/// library. Proxies, expiring client certificates from credential plugins, and timeouts of reads
/// and writes in the configuration are not supported. Use `Client::try_from` if you need them.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config = kube::Config::infer().await?;
/// // Without TLS. With kube's feature `rustls-tls`, the second argument is
/// // `kube::client::ConfigExt::rustls_https_connector_with_connector`.
/// let client = informer_reflector::connect(config, |_, tcp| Ok(tcp))?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If credentials or headers of the configuration are invalid, or if `tls` fails.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn connect<C>(
    config: Config,
    tls: impl FnOnce(&Config, HttpConnector) -> Result<C, kube::Error>,
) -> Result<Client, kube::Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Error: Into<BoxError>,
    C::Future: Send,
{
    let limit = config.connect_timeout.map_or(CONNECT_TIMEOUT, |own| own.min(CONNECT_TIMEOUT));
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(limit));
    tcp.set_keepalive(Some(KEEPALIVE_IDLE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let connector = tls(&config, tcp)?;
    // The timeout of `tcp` covers neither name resolution nor the TLS handshake.
    let connector = service_fn(move |uri: Uri| {
        let connecting = connector.clone().oneshot(uri);
        Box::pin(async move {
            match timeout(limit, connecting).await {
                Ok(outcome) => outcome.map_err(Into::<BoxError>::into),
                Err(_) => Err(format!("not connected within {limit:?}").into()),
            }
        })
    });
    let http: HttpClient<_, Body> =
        HttpClient::builder(TokioExecutor::new()).pool_idle_timeout(POOL_IDLE_TIMEOUT).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(|error| Box::new(error) as BoxError)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
