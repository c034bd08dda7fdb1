//! Tests of the inspector's requests: access, shown objects, masked values, and pages of a search.

mod access;
mod objects;
mod scale;
mod secrets;
mod state;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use informer_factory::SharedInformerFactory;
use informer_monitor::Inspector;
use informer_testing::Simulator;
use serde_json::Value;
use tower::ServiceExt;

const TOKEN: &str = "0123456789abcdef";

/// A response, whose body is text.
struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

async fn send(router: &Router, request: Request<Body>) -> Response {
    let response = router.clone().oneshot(request).await.expect("infallible");
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    Response { status, headers, body: String::from_utf8_lossy(&body).into_owned() }
}

/// Requests a JSON document of the inspector's API, with the valid token.
async fn get(router: &Router, path: &str, parameters: &[(&str, &str)]) -> Response {
    let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    let request = Request::builder()
        .method(Method::GET)
        .uri(format!("/inspect/api/{path}?{query}"))
        .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
        .body(Body::empty());
    send(router, request.expect("a request")).await
}

/// Does the same as [`get`] for a request that must succeed, and returns the document.
async fn document(router: &Router, path: &str, parameters: &[(&str, &str)]) -> Value {
    let response = get(router, path, parameters).await;
    assert_eq!(response.status, StatusCode::OK, "{path} {parameters:?}: {}", response.body);
    serde_json::from_str(&response.body).expect("JSON")
}

fn router(inspector: Inspector) -> Router {
    inspector.token(TOKEN).into_router().expect("a valid token")
}

/// Starts a simulator without objects. Returns it with a factory that is not started.
async fn cluster() -> (Simulator, SharedInformerFactory) {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    (simulator, factory)
}

async fn start(factory: &SharedInformerFactory) {
    factory.start();
    soon(factory.wait_for_cache_sync()).await.expect("the informers sync");
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes less than a minute")
}

/// Requests a JSON document of the inspector's API until the document meets a condition, and
/// returns the document.
async fn until(
    router: &Router,
    path: &str,
    parameters: &[(&str, &str)],
    is_it: impl Fn(&Value) -> bool,
) -> Value {
    let wait = async {
        loop {
            let response = get(router, path, parameters).await;
            if let Ok(found) = serde_json::from_str(&response.body)
                && is_it(&found)
            {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await
}

/// Returns the keys of the objects on a page of search results.
fn keys(page: &Value) -> Vec<&str> {
    let rows = page["objects"].as_array().expect("rows");
    rows.iter().map(|row| row["key"].as_str().expect("a key")).collect()
}
