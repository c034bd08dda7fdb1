//! The simulator as a tower service, which the listener serves and which clients can call in
//! process.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::accept::{self, Accepted, Endpoint};
use super::body::ResponseBody;
use super::call::Call;
use super::respond::{self, HttpResponse};
use super::route::{Document, Health, Route, Subresource, route};
use super::{collection, documents, metrics, object};
use crate::api::status::{self, Refusal};
use crate::fault::ShutdownAnswer;
use crate::http::encoding::Encoding;
use crate::http::encoding::indent::indent;
use crate::http::encoding::protobuf::message_of;
use crate::http::request::RecordedRequest;
use crate::http::server::Server;
use crate::kinds::ResourceKind;
use crate::storage::Revision;

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// Maximum time for the body of a request to arrive, like the real server's `--request-timeout`.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The response to `/version`.
const VERSION: &str = r#"{"major":"1","minor":"36","gitVersion":"v1.36.0-simulated","gitCommit":"","gitTreeState":"clean","buildDate":"2026-01-01T00:00:00Z","goVersion":"","compiler":"","platform":"linux/amd64"}"#;

/// The health checks. The last check is part of `/readyz` only.
const HEALTH_CHECKS: [&str; 4] = ["ping", "log", "etcd", "shutdown"];

/// A request extension that marks a request for a WebSocket. A watch then sends each event as a
/// separate message.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneByOne;

/// A simulator's API as a [`tower::Service`], for clients in the same process.
///
/// `kube::Client::new(simulator.service(), "default")` creates a client without a socket, which
/// works with tokio's paused time. Call the service within a tokio runtime. The service does not
/// support `WebSockets`, because it has no connection to upgrade.
#[derive(Clone, Debug)]
pub struct Service {
    pub(super) server: Arc<Server>,
    /// The resource version that this API server has reached.
    revision: Revision,
}

impl Service {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let revision = server.api.revision.clone();
        Self { server, revision }
    }

    /// Creates the service of a replica: an API server with the same storage as `server`.
    /// `revision` is the resource version that the replica has reached.
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
    /// A connection error. It occurs only for requests with the fault
    /// [`Fault::refuse`](crate::Fault::refuse).
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(receive(self.clone(), request))
    }
}

/// Records and answers a request, and applies the fault for this request, if any.
async fn receive<B>(service: Service, request: Request<B>) -> io::Result<HttpResponse>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let route = route(&service.server, head.uri.path());
    let query = head.uri.query().unwrap_or_default().to_owned();
    let watch = collection::is_watch_requested(&query);
    let recorded = Arc::new(RecordedRequest {
        verb: route.verb(&head.method, watch),
        version: head.version,
        method: head.method,
        path: head.uri.path().to_owned(),
        query,
        headers: head.headers,
    });
    service.server.requests.push(recorded.clone());
    let (fault, stop) = (service.server.faults.take(&recorded), service.server.api.stop.clone());
    let one_by_one = head.extensions.get::<OneByOne>().is_some();
    let answer = answer(service, recorded, one_by_one, body);
    match fault {
        Some(fault) => fault.apply(answer, &stop).await,
        None => Ok(answer.await),
    }
}

/// Returns the route of a request, and the request with the verb for this route, such as `List`.
///
/// The result can change while a fault stalls the request or the body arrives, because a custom
/// resource definition can be created or deleted in this time. Call this again after such a wait.
fn locate(server: &Server, recorded: Arc<RecordedRequest>) -> (Route, Arc<RecordedRequest>) {
    let route = route(server, &recorded.path);
    let verb = route.verb(&recorded.method, collection::is_watch_requested(&recorded.query));
    if verb == recorded.verb {
        return (route, recorded);
    }
    (route, Arc::new(RecordedRequest { verb, ..RecordedRequest::clone(&recorded) }))
}

async fn answer<B>(
    service: Service,
    recorded: Arc<RecordedRequest>,
    one_by_one: bool,
    body: B,
) -> HttpResponse
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Service { server, revision } = service;
    // The route may have changed while a fault stalled the request.
    let (route, recorded) = locate(&server, recorded);
    let cbor = server.settings.cbor;
    let refusals = accept::encoding_of_refusals(&recorded, cbor);
    let refused = |refusal: &Refusal| respond::status(refusal, refusals);
    let exempt = revision.is_of_replica() || matches!(route, Route::Health(_));
    if let Some(refusal) = server.shutdown_answer(exempt).and_then(ShutdownAnswer::response) {
        return respond::canned(refusal);
    }
    if let Err(refusal) = super::timeout::check(&recorded) {
        return refused(&refusal);
    }
    if !server.credentials.accept(&recorded.headers) {
        return refused(&status::unauthorized());
    }
    let body = match read(body).await {
        Ok(body) => body,
        // The connection is closed, because the server does not read the rest of the body.
        Err(refusal) => return respond::closing(refused(&refusal)),
    };
    // A custom resource definition may have been created or deleted while the body arrived.
    let (route, recorded) = locate(&server, recorded);
    let accepted = match &route {
        Route::Collection { served, .. } => accept::negotiate(&recorded, endpoint(&served.kind, None, cbor)),
        Route::Object { served, subresource, .. } => {
            accept::negotiate(&recorded, endpoint(&served.kind, Some(*subresource), cbor))
        }
        // Most other routes, such as documents and reviews, answer in JSON only.
        _ if accept::takes_json(&recorded.headers) => Ok(Accepted::json(&recorded)),
        Route::Version
        | Route::Metrics
        | Route::Health(_)
        | Route::Missing
        | Route::Unknown
        | Route::Document(Document::OpenApiV2) => Ok(Accepted::json(&recorded)),
        Route::Document(_) | Route::Review(_) => Err(status::not_acceptable(Encoding::Json.media_type())),
    };
    let answered = match accepted {
        Ok(accepted) => {
            dispatch(&route, Call { server, revision, recorded, accepted, one_by_one, body }).await
        }
        Err(refusal) => Err(refusal),
    };
    respond::classified(answered.unwrap_or_else(|refusal| refused(&refusal)))
}

fn endpoint(kind: &ResourceKind, subresource: Option<Subresource>, cbor: bool) -> Endpoint {
    // `Scale` has a protobuf message, whatever the kind of the scaled object.
    let protobuf =
        subresource == Some(Subresource::Scale) || message_of(&kind.api_version(), &kind.kind).is_some();
    // A real server accepts `application/*` only for kinds without Go types.
    Endpoint { protobuf, cbor, forms: true, exact: kind.is_built_in() }
}

async fn dispatch(route: &Route, call: Call) -> Result<HttpResponse, Refusal> {
    match route {
        Route::Version if call.recorded.method != Method::GET => Err(status::method_not_allowed()),
        // The version is always indented, like the list of paths.
        Route::Version => {
            Ok(respond::whole(StatusCode::OK, Encoding::Json, indent(VERSION.as_bytes()), false))
        }
        Route::Metrics => Ok(metrics::answer(&call.server.watches.terminated())),
        Route::Health(health) => Ok(health_of(&call, *health)),
        Route::Missing => Err(status::no_such_resource()),
        Route::Unknown => Ok(respond::page_not_found()),
        Route::Document(document) => documents::answer(&call, document),
        Route::Review(review) => documents::review(&call, review),
        Route::Collection { served, namespace } => {
            collection::answer(&call, served, namespace.as_deref()).await
        }
        Route::Object { served, namespace, name, subresource } => {
            let target =
                object::Target { served, namespace: namespace.as_deref(), name, subresource: *subresource };
            object::answer(&call, &target).await
        }
    }
}

fn health_of(call: &Call, check: Health) -> HttpResponse {
    // Lagging replicas are not shut down.
    let is_leaving = call.server.is_shutting_down() && !call.revision.is_of_replica();
    match check {
        Health::NotShuttingDown if is_leaving => respond::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal server error: process is shutting down\n",
        ),
        Health::NotShuttingDown => respond::text(StatusCode::OK, "ok"),
        Health::Alive | Health::Ready => all_checks(&call.recorded, check, is_leaving),
    }
}

/// Answers with the result of all health checks. The answer lists each check if one has failed or
/// the request has the parameter `verbose`.
fn all_checks(request: &RecordedRequest, health: Health, is_leaving: bool) -> HttpResponse {
    let name = request.path.trim_matches('/');
    let excluded = request.parameters("exclude");
    let checks = HEALTH_CHECKS.into_iter().filter(|check| health == Health::Ready || *check != "shutdown");
    let result = |check: &str| match check {
        _ if excluded.iter().any(|excluded| excluded == check) => format!("[+]{check} excluded: ok\n"),
        "shutdown" if is_leaving => "[-]shutdown failed: reason withheld\n".to_owned(),
        _ => format!("[+]{check} ok\n"),
    };
    let results: String = checks.map(result).collect();
    if results.contains("[-]") {
        respond::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{results}{name} check failed\n"))
    } else if request.parameter("verbose").is_some() {
        respond::text(StatusCode::OK, format!("{results}{name} check passed\n"))
    } else {
        respond::text(StatusCode::OK, "ok")
    }
}

async fn read<B>(body: B) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {MAX_BODY}");
            Err(status::failure(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message))
        }
        Ok(Err(error)) => Err(status::internal(error.to_string())),
        Err(_) => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(status::failure(StatusCode::GATEWAY_TIMEOUT, "Timeout", message))
        }
    }
}
