//! [`connect`]: a client whose connections notice within seconds that the other side is gone.
//!
//! client-go notices by HTTP/2 pings. kube's connectors speak HTTP/1.1 only, so this uses TCP keepalive.

use std::error::Error;
use std::time::Duration;

use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::ServiceBuilder;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// After so long without data the kernel asks the other side whether it is there,
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);

/// and again after so long,
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// and gives the connection up after so many questions without an answer.
const KEEPALIVE_RETRIES: u32 = 3;

/// How long data that was sent may stay unacknowledged (Linux only).
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// After so long, an idle connection serves no further request. This is shorter than the time in which the reflector
/// notices that a watch is dead: connections that went dead with it would delay the next watch by 15 seconds each.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns a client for informers. It differs from `Client::try_from(config)` in this:
///
/// - A connection whose other side is gone is closed after 30 seconds, by TCP keepalive and, on Linux, a limit for
///   unacknowledged data. With kube's client a watch on it stays silent until the reflector
///   [gives it up](crate::ReflectorConfig::watch_idle_timeout).
/// - A connection that was idle for 20 seconds serves no further request, because it may be dead without notice.
/// - Connecting gives up after 10 seconds, or sooner if `config.connect_timeout` is shorter.
/// - No request is retried below the reflector, whatever `config.default_retry` says. Its backoff would never see the
///   failures.
/// - kube's tracing layer is left out, which logs every failed request as an error of its own.
///
/// `tls` makes the connector for encrypted connections, since the choice of a TLS library is the program's. Proxies of the
/// configuration are not used, nor is the expiry of client certificates that a credential plugin returns known; use
/// `Client::try_from` where one of these is needed.
///
/// Must be called within a tokio runtime.
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
/// If credentials or headers of the configuration are not usable, and what `tls` returns.
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
