//! [`router`]: an axum router with the health and the metrics of a factory.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use informer_factory::{InformerReport, InformerState, SharedInformerFactory, StopCause};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::InformerMetrics;

struct Monitored {
    factory: SharedInformerFactory,
    registry: Registry,
}

/// Returns a router for the probes of Kubernetes and for Prometheus.
///
/// | path | response |
/// |---|---|
/// | `/healthz` | 200; or 500 and the names of informers whose tasks have panicked |
/// | `/readyz` | 200; or 503 and, for each informer that is not synced, its name and the reason |
/// | `/metrics` | the [`InformerMetrics`] of the factory, and the other metrics of `registry`, as `OpenMetrics` text |
///
/// An informer that was requested and not started is not synced. Once synced, an informer stays
/// synced while its server is unavailable, so the program stays ready; `informer_health` in the
/// metrics shows the outage.
///
/// ```no_run
/// use informer_factory::SharedInformerFactory;
/// use informer_monitor::router;
///
/// # async fn serve(factory: SharedInformerFactory) -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
/// axum::serve(listener, router(&factory, Default::default())).await
/// # }
/// ```
pub fn router(factory: &SharedInformerFactory, mut registry: Registry) -> Router {
    registry.register_collector(Box::new(InformerMetrics::new(factory)));
    let monitored = Monitored { factory: factory.clone(), registry };
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(Arc::new(monitored))
}

async fn healthz(State(monitored): State<Arc<Monitored>>) -> Response {
    let has_panicked = |report: &InformerReport| report.state == InformerState::Stopped(StopCause::Panicked);
    respond(&monitored.factory, StatusCode::INTERNAL_SERVER_ERROR, has_panicked)
}

async fn readyz(State(monitored): State<Arc<Monitored>>) -> Response {
    respond(&monitored.factory, StatusCode::SERVICE_UNAVAILABLE, |report| !report.has_synced)
}

/// Responds with `failure` and the informers for which `has_failed` returns `true`, or with 200 if
/// there are none.
fn respond(
    factory: &SharedInformerFactory,
    failure: StatusCode,
    has_failed: impl Fn(&InformerReport) -> bool,
) -> Response {
    let failed: Vec<_> = factory.informers().into_iter().filter(has_failed).collect();
    if failed.is_empty() {
        return "ok\n".into_response();
    }
    let lines: String = failed.iter().map(|report| format!("{report}\n")).collect();
    (failure, lines).into_response()
}

async fn metrics(State(monitored): State<Arc<Monitored>>) -> Response {
    let mut page = String::new();
    match encode(&mut page, &monitored.registry) {
        Ok(()) => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(CONTENT_TYPE, content_type)], page).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
