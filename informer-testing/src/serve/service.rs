//! The simulator as a tower service, which the listener serves and which clients can call in process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};

use super::body::ResponseBody;
use super::respond::{self, HttpResponse};
use super::route::{Route, route};
use super::{accept, collection, object};
use crate::request::{RecordedRequest, Verb};
use crate::server::Server;
use crate::status::{self, Refusal};
use crate::storage::Revision;
use crate::watch::Shape;

/// The largest request body that the server reads, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// What `/version` answers.
const VERSION: &str = r#"{"major":"1","minor":"36","gitVersion":"v1.36.0-simulated","gitCommit":"","gitTreeState":"clean","buildDate":"2026-01-01T00:00:00Z","goVersion":"","compiler":"","platform":"linux/amd64"}"#;

/// A simulator's API as a [`tower::Service`], for clients in the same process.
///
/// `kube::Client::new(simulator.service(), "default")` makes a client that needs no socket, and so works with
/// tokio's paused time. Calling the service must happen within a tokio runtime.
#[derive(Clone, Debug)]
pub struct Service {
    server: Arc<Server>,
    /// How far this API server knows of what is stored.
    revision: Revision,
}

/// A request whose body has been read.
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) revision: Revision,
    pub(super) recorded: Arc<RecordedRequest>,
    pub(super) shape: Shape,
    pub(super) body: Bytes,
}

impl Service {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let revision = server.revision.clone();
        Self { server, revision }
    }

    /// Another API server in front of the same storage.
    pub(crate) fn of_replica(server: Arc<Server>, revision: Revision) -> Self {
        Self { server, revision }
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    /// Only where a test has the server [refuse](crate::Fault::refuse).
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(receive(self.clone(), request))
    }
}

/// Records a request and answers it, unless something is to befall it.
async fn receive<B>(service: Service, request: Request<B>) -> io::Result<HttpResponse>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Service { server, revision } = service;
    let (head, body) = request.into_parts();
    let route = route(&server, head.uri.path());
    let query = head.uri.query().unwrap_or_default().to_owned();
    let watch = collection::asks_to_watch(&query);
    let recorded = Arc::new(RecordedRequest {
        verb: route.verb(&head.method, watch),
        method: head.method,
        path: head.uri.path().to_owned(),
        query,
        headers: head.headers,
    });
    server.requests.push(recorded.clone());
    let (fault, stop) = (server.faults.take(&recorded), server.stop.clone());
    let answer = answer(server, revision, recorded, route, body);
    match fault {
        Some(fault) => fault.befall(answer, &stop).await,
        None => Ok(answer.await),
    }
}

async fn answer<B>(
    server: Arc<Server>,
    revision: Revision,
    recorded: Arc<RecordedRequest>,
    route: Route,
    body: B,
) -> HttpResponse
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if server.stop.is_cancelled() {
        return respond::status(&shutting_down());
    }
    if !server.credentials.accept(&recorded.headers) {
        return respond::status(&status::unauthorized());
    }
    let body = match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return respond::status(&too_large()),
    };
    let answered = match accept::negotiate(&recorded.headers) {
        Ok(shape) => dispatch(route, Call { server, revision, recorded, shape, body }).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| respond::status(&refusal))
}

async fn dispatch(route: Route, call: Call) -> Result<HttpResponse, Refusal> {
    match route {
        Route::Version => Ok(respond::json(StatusCode::OK, ResponseBody::whole(VERSION))),
        Route::Health => Ok(respond::text(StatusCode::OK, "ok")),
        Route::Unknown => Ok(respond::text(StatusCode::NOT_FOUND, "404 page not found\n")),
        Route::Collection { table, namespace } => match call.recorded.verb {
            Verb::List => collection::list(&call, &table, namespace.as_deref()).await,
            Verb::Watch => collection::watch(&call, &table, namespace.as_deref()).await,
            Verb::Create => collection::create(&call, &table, namespace.as_deref()),
            Verb::DeleteCollection => collection::delete(&call, &table, namespace.as_deref()).await,
            _ => Err(status::method_not_allowed()),
        },
        Route::Object { table, namespace, name, part } => {
            let target = object::Target { table: &table, namespace: namespace.as_deref(), name: &name, part };
            match call.recorded.verb {
                Verb::Get => object::get(&call, &target).await,
                Verb::Update => object::update(&call, &target),
                Verb::Patch => object::patch(&call, &target),
                Verb::Delete => object::delete(&call, &target),
                _ => Err(status::method_not_allowed()),
            }
        }
    }
}

impl Call {
    /// Parses the body as a JSON object.
    pub(super) fn object(&self) -> Result<crate::writes::Body, Refusal> {
        match content_type(&self.recorded.headers) {
            "" | "application/json" => {}
            _ => return Err(status::unsupported_media_type("application/json")),
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            status::bad_request(format!(
                "the object provided is unrecognized (must be of type Object): {error}"
            ))
        })
    }

    pub(super) fn content_type(&self) -> &str {
        content_type(&self.recorded.headers)
    }

    /// Tells whether nothing is to be stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.recorded.parameter("dryRun").is_some_and(|value| value == "All")
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

fn shutting_down() -> Refusal {
    status::failure(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", "apiserver is shutting down")
}

fn too_large() -> Refusal {
    let message = format!("Request entity too large: limit is {BODY_LIMIT}");
    status::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
}
