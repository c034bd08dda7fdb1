//! [`connect`]: creates a client whose connections detect a dead server within 30 seconds.
//!
//! client-go uses HTTP/2 pings. kube's connectors support HTTP/1.1 only, so this function uses TCP
//! keepalive.

use std::error::Error;
use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::ServiceBuilder;

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
/// - Connecting times out after 10 seconds, or earlier if `config.connect_timeout` is shorter.
/// - Requests are not retried, even if `config.default_retry` is set, so that the reflector's
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
    C: Connect + Clone + Send + Sync + 'static,
{
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(
        config.connect_timeout.map(|own| own.min(CONNECT_TIMEOUT)).or(Some(CONNECT_TIMEOUT)),
    );
    tcp.set_keepalive(Some(KEEPALIVE_IDLE));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    let http: HttpClient<C, Body> = HttpClient::builder(TokioExecutor::new())
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .build(tls(&config, tcp)?);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace).build())
}
