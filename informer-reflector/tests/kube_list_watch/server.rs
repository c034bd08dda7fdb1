//! A server in the same process.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use informer_core::{ListOptions, ListPart, ListWatchError, ListerWatcher, WatchEvent, WatchOptions};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::client::Body;
use tower::BoxError;
use tower_http::decompression::Decompression;

pub(crate) type ServerBody = UnsyncBoxBody<Bytes, io::Error>;
pub(crate) type Answer = Result<Response<ServerBody>, BoxError>;

/// A server that records requests and returns the given answers in order.
#[derive(Clone, Default)]
pub(crate) struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: Arc<Mutex<Vec<Request<()>>>>,
}

impl Server {
    pub(crate) fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), requests: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        Client::new(tower::service_fn(move |request| std::future::ready(server.answer(request))), "default")
    }

    /// A client that decompresses responses itself, like kube's client with the feature `gzip`.
    pub(crate) fn decompressing_client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| std::future::ready(server.answer(request)));
        Client::new(Decompression::new(service), "default")
    }

    fn answer(&self, request: Request<Body>) -> Answer {
        self.requests.lock().expect("not poisoned").push(request.map(drop));
        let answer = self.answers.lock().expect("not poisoned").pop_front();
        answer.unwrap_or_else(|| Err("no answer left".into()))
    }

    pub(crate) fn uris(&self) -> Vec<String> {
        self.requests.lock().expect("not poisoned").iter().map(|request| request.uri().to_string()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Vec<Option<String>> {
        let requests = self.requests.lock().expect("not poisoned");
        let header = |request: &Request<()>| request.headers().get(name)?.to_str().ok().map(str::to_owned);
        requests.iter().map(header).collect()
    }
}

/// An answer with the given body chunks; the last may be an error.
pub(crate) fn chunked<T: Into<Bytes> + Send + 'static>(code: u16, chunks: Vec<io::Result<T>>) -> Answer {
    streamed(code, stream::iter(chunks.into_iter().map(|chunk| chunk.map(Into::into))))
}

/// An answer whose body is a stream.
pub(crate) fn streamed(code: u16, chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Answer {
    let body = UnsyncBoxBody::new(StreamBody::new(chunks.map_ok(http_body::Frame::data)));
    let response = Response::builder().status(code).header("content-type", "application/json");
    Ok(response.body(body).expect("a response"))
}

pub(crate) fn answer(code: u16, body: &'static str) -> Answer {
    chunked(code, vec![Ok(body)])
}

pub(crate) fn with_header(answer: Answer, name: &'static str, value: &'static str) -> Answer {
    let mut response = answer?;
    response.headers_mut().insert(name, value.parse().expect("a header"));
    Ok(response)
}

pub(crate) const EMPTY_LIST: &str = r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;

pub(crate) fn watch_options(version: &str) -> WatchOptions {
    WatchOptions {
        resource_version: version.into(),
        timeout: Duration::from_secs(300),
        allow_bookmarks: true,
        send_initial_events: false,
    }
}

/// Returns the non-empty parts of a list.
pub(crate) async fn list<K: 'static>(
    list_watch: &dyn ListerWatcher<K>,
    options: ListOptions,
) -> Result<Vec<ListPart<K>>, ListWatchError> {
    let mut parts: Vec<ListPart<K>> = list_watch.list(options).await?.try_collect().await?;
    parts.retain(|part| !matches!(part, ListPart::Items(items) if items.is_empty()));
    Ok(parts)
}

/// Returns the non-empty batches of a watch.
pub(crate) async fn watch<K: 'static>(
    list_watch: &dyn ListerWatcher<K>,
    options: WatchOptions,
) -> Result<Vec<Vec<WatchEvent<K>>>, ListWatchError> {
    let mut batches: Vec<Vec<_>> = list_watch.watch(options).await?.try_collect().await?;
    batches.retain(|batch| !batch.is_empty());
    Ok(batches)
}

/// Lists pods with one error response from the server, and returns the error.
pub(crate) async fn list_error(answer: Answer) -> ListWatchError {
    let pods = KubeListWatch::<Pod>::all(Server::answering([answer]).client());
    list(&pods, ListOptions::default()).await.expect_err("an error")
}
