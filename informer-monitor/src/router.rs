//! [`router`]: an axum router with the health and the metrics of a factory.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use informer_factory::SharedInformerFactory;
use informer_factory::status::FactoryHealth;
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
/// | `/healthz` | 200; or 500 if the task of an informer has panicked |
/// | `/readyz` | 200; or 503 if an informer is not synced |
/// | `/metrics` | the [`InformerMetrics`] of the factory, and the other metrics of `registry`, as `OpenMetrics` text |
///
/// The body of `/healthz` and `/readyz` is [`SharedInformerFactory::health`] in words: it names each
/// informer that is not synced or not live, with the reason.
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

async fn healthz(State(monitored): State<Arc<Monitored>>) -> (StatusCode, String) {
    let health = monitored.factory.health();
    respond(if health.has_panicked() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }, &health)
}

async fn readyz(State(monitored): State<Arc<Monitored>>) -> (StatusCode, String) {
    let health = monitored.factory.health();
    respond(if health.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, &health)
}

fn respond(status: StatusCode, health: &FactoryHealth) -> (StatusCode, String) {
    (status, format!("{health}\n"))
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
