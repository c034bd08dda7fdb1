//! [`Link`]: a candidate's connection to the server, which can fail independently of other
//! candidates.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use informer_testing::{ResponseBody, Simulator};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service as _;

/// How a link handles requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behavior {
    Open,
    /// Each request fails at once.
    Refused,
    /// The server receives no requests, and no response arrives.
    Silent,
    /// The server applies a write, but its response is lost.
    AnswersLost,
    /// Each request is delayed, refused, or lost, or its response is lost, at random. Contains the
    /// seed.
    Troubled(u64),
}

/// A candidate's connection to the server.
#[derive(Clone)]
pub(crate) struct Link {
    simulator: informer_testing::Service,
    behavior: Arc<Mutex<Behavior>>,
}

impl Link {
    pub(crate) fn to(simulator: &Simulator) -> Self {
        Self { simulator: simulator.service(), behavior: Arc::new(Mutex::new(Behavior::Open)) }
    }

    pub(crate) fn set(&self, behavior: Behavior) {
        *self.behavior.lock() = behavior;
    }

    pub(crate) fn client(&self) -> kube::Client {
        let link = self.clone();
        let service = tower::service_fn(move |request| link.clone().pass(request));
        kube::Client::new(service, "default")
    }

    async fn pass(mut self, request: Request<Body>) -> std::io::Result<Response<ResponseBody>> {
        let is_write = request.method() != http::Method::GET;
        match self.take_behavior() {
            Behavior::Refused => Err(std::io::ErrorKind::ConnectionRefused.into()),
            Behavior::Silent => std::future::pending().await,
            Behavior::AnswersLost if is_write => {
                _ = self.simulator.call(request).await?;
                std::future::pending().await
            }
            Behavior::Open | Behavior::AnswersLost => self.simulator.call(request).await,
            Behavior::Troubled(random) => {
                // The clock is paused (`start_paused`). If the caller drops the request during the delay, the server never
                // receives the request.
                tokio::time::sleep(Duration::from_millis(random % 300)).await;
                self.simulator.call(request).await
            }
        }
    }

    /// Returns the behavior for the next request.
    fn take_behavior(&self) -> Behavior {
        let mut behavior = self.behavior.lock();
        let Behavior::Troubled(seed) = &mut *behavior else { return *behavior };
        let mut random = fastrand::Rng::with_seed(*seed);
        *seed = random.u64(..);
        match random.u8(..10) {
            0 => Behavior::Refused,
            1 => Behavior::Silent,
            2 => Behavior::AnswersLost,
            _ => Behavior::Troubled(random.u64(..)),
        }
    }
}
