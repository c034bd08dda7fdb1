//! A server in the same process: empty lists, and watches whose events a test sends.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::future::{Ready, ready};
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use parking_lot::Mutex;

const EMPTY: &str =
    r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;

/// A server that returns an empty list of config maps, and on whose watches the test sends events.
#[derive(Clone, Default)]
pub(crate) struct Server {
    watches: Arc<Mutex<Vec<mpsc::UnboundedSender<Bytes>>>>,
}

impl Server {
    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Returns the number of open watches.
    pub(crate) fn watches(&self) -> usize {
        self.watches.lock().len()
    }

    /// Sends a piece of the response body to each watch.
    pub(crate) fn send(&self, piece: &Bytes) {
        for watch in &*self.watches.lock() {
            watch.unbounded_send(piece.clone()).expect("the informer watches");
        }
    }
}

impl tower::Service<Request<Body>> for Server {
    type Response = Response<UnsyncBoxBody<Bytes, Infallible>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let body = if request.uri().query().is_some_and(|query| query.contains("watch=1")) {
            let (sender, pieces) = mpsc::unbounded();
            self.watches.lock().push(sender);
            pieces.boxed()
        } else {
            stream::iter([Bytes::from_static(EMPTY.as_bytes())]).boxed()
        };
        let frames = body.map(|piece| Ok(Frame::data(piece)));
        ready(Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(frames)))))
    }
}
