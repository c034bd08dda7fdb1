//! [`Interruptions`]: a layer between client and server that breaks connections and rejects lists
//! and watches on demand. A real server does so after a restart, which a test cannot time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Layer, Service};

use crate::cluster::config;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The two forms in which a server reports that the version of a watch has expired.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expired {
    /// The server rejects the request with 410.
    AtOnce,
    /// The request succeeds, and its first event has the type ERROR.
    InStream,
}

/// Injects faults into the requests of one client. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Interruptions {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_down: watch::Sender<bool>,
    /// Cancelled to break all open responses.
    cut: Mutex<CancellationToken>,
    watches: Mutex<VecDeque<Expired>>,
    expire_next_list: AtomicBool,
    expire_next_page: AtomicBool,
    lists: AtomicUsize,
    streams: AtomicUsize,
}

/// An outage: until it is dropped, no request reaches the server.
#[must_use]
pub(crate) struct Outage {
    state: Arc<State>,
}

impl Interruptions {
    /// Returns a client with all permissions whose requests pass through this layer.
    pub(crate) async fn client(&self) -> Client {
        let builder = ClientBuilder::try_from(config("admin").await).expect("the configuration is valid");
        builder.with_layer(self).build()
    }

    /// Breaks all open responses, and delays all requests until the outage is dropped.
    pub(crate) fn outage(&self) -> Outage {
        self.state.is_down.send_replace(true);
        std::mem::take(&mut *self.state.cut.lock()).cancel();
        Outage { state: Arc::clone(&self.state) }
    }

    /// Makes the next watch expire.
    pub(crate) fn expire_next_watch(&self, how: Expired) {
        self.state.watches.lock().push_back(how);
    }

    /// Makes the next list expire, so that the reflector's next list requests the latest state.
    pub(crate) fn expire_next_list(&self) {
        self.state.expire_next_list.store(true, Ordering::Relaxed);
    }

    /// Makes the next request for a second or later page expire.
    pub(crate) fn expire_next_page(&self) {
        self.state.expire_next_page.store(true, Ordering::Relaxed);
    }

    /// Returns the number of requests for streaming lists.
    pub(crate) fn streams(&self) -> usize {
        self.state.streams.load(Ordering::Relaxed)
    }

    /// Returns the number of requests for lists and pages, not counting streaming lists.
    pub(crate) fn lists(&self) -> usize {
        self.state.lists.load(Ordering::Relaxed)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.state.is_down.send_replace(false);
    }
}

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    /// A list that continues as a watch.
    StreamingList,
    NextPage,
    Watch,
    Other,
}

impl Kind {
    fn of(request: &Request<Body>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        match *request.method() {
            Method::GET if query.contains("sendInitialEvents=true") => Self::StreamingList,
            Method::GET if query.contains("watch=1") => Self::Watch,
            Method::GET if query.contains("continue=") => Self::NextPage,
            Method::GET => Self::List,
            _ => Self::Other,
        }
    }
}

impl State {
    /// Returns the response that replaces the server's response, if any.
    fn interruption(&self, kind: Kind) -> Option<Answer> {
        match kind {
            Kind::List | Kind::NextPage => _ = self.lists.fetch_add(1, Ordering::Relaxed),
            Kind::StreamingList => _ = self.streams.fetch_add(1, Ordering::Relaxed),
            Kind::Watch | Kind::Other => {}
        }
        let is_planned = |plan: &AtomicBool| plan.swap(false, Ordering::Relaxed);
        match kind {
            Kind::Watch => self.watches.lock().pop_front().map(expired),
            Kind::List | Kind::StreamingList => {
                is_planned(&self.expire_next_list).then(|| expired(Expired::AtOnce))
            }
            Kind::NextPage => is_planned(&self.expire_next_page).then(|| expired(Expired::AtOnce)),
            Kind::Other => None,
        }
    }

    /// Waits for the end of the outage, if any. Returns the token that the next outage cancels.
    async fn wait_until_up(&self) -> CancellationToken {
        let mut is_down = self.is_down.subscribe();
        loop {
            // The sender is part of `self`, so this wait cannot fail.
            _ = is_down.wait_for(|is_down| !is_down).await;
            let cut = self.cut.lock().clone();
            // An outage that begins after the check cancels this token.
            if !*is_down.borrow() {
                return cut;
            }
        }
    }
}

fn expired(how: Expired) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version",
    });
    let (code, body) = match how {
        Expired::AtOnce => (StatusCode::GONE, status),
        Expired::InStream => (StatusCode::OK, json!({ "type": "ERROR", "object": status })),
    };
    let body = Full::new(Bytes::from(format!("{body}\n"))).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    answer
}

/// Returns a body that fails when `cut` is cancelled.
fn breakable<B>(body: B, cut: CancellationToken) -> UnsyncBoxBody<Bytes, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let is_cut = cut.clone();
    let break_off = stream::once(async move {
        // If the body ended before the cut, the response is complete.
        if is_cut.is_cancelled() {
            Err(io::Error::from(io::ErrorKind::ConnectionReset).into())
        } else {
            Ok(None)
        }
    });
    let frames = BodyStream::new(body.map_err(Into::into))
        .map_ok(Some)
        .take_until(cut.cancelled_owned())
        .chain(break_off)
        .try_filter_map(async |frame| Ok(frame));
    StreamBody::new(frames).boxed_unsync()
}

impl<S> Layer<S> for Interruptions {
    type Service = Interrupted<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Interrupted { inner, state: Arc::clone(&self.state) }
    }
}

pub(crate) struct Interrupted<S> {
    inner: S,
    state: Arc<State>,
}

impl<S, B> Service<Request<Body>> for Interrupted<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (state, kind) = (Arc::clone(&self.state), Kind::of(&request));
        // The request is sent only when this future is polled.
        let response = self.inner.call(request);
        async move {
            let cut = state.wait_until_up().await;
            if let Some(answer) = state.interruption(kind) {
                return Ok(answer);
            }
            let response = cut.run_until_cancelled(response).await;
            let response = response.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset))??;
            Ok(response.map(|body| breakable(body, cut)))
        }
        .boxed()
    }
}
