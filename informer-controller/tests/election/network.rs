//! [`Link`]: a candidate's way to the server, which can fail for it alone.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use informer_testing::{ResponseBody, Simulator};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service as _;

/// What becomes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Nobody is there.
    Refused,
    /// Nothing gets there, and nothing comes back.
    Silent,
    /// The server does what is asked, but its answer to a write is lost.
    AnswersLost,
    /// Whatever becomes of it, at random.
    Troubled(u64),
}

/// A candidate's way to the server.
#[derive(Clone)]
pub(crate) struct Link {
    simulator: informer_testing::Service,
    way: Arc<Mutex<Way>>,
}

impl Link {
    pub(crate) fn to(simulator: &Simulator) -> Self {
        Self { simulator: simulator.service(), way: Arc::new(Mutex::new(Way::Open)) }
    }

    pub(crate) fn set(&self, way: Way) {
        *self.way.lock() = way;
    }

    pub(crate) fn client(&self) -> kube::Client {
        let link = self.clone();
        let service = tower::service_fn(move |request| link.clone().pass(request));
        kube::Client::new(service, "default")
    }

    async fn pass(mut self, request: Request<Body>) -> std::io::Result<Response<ResponseBody>> {
        let is_write = request.method() != http::Method::GET;
        match self.take_way() {
            Way::Refused => Err(std::io::ErrorKind::ConnectionRefused.into()),
            Way::Silent => std::future::pending().await,
            Way::AnswersLost if is_write => {
                _ = self.simulator.call(request).await?;
                std::future::pending().await
            }
            Way::Open | Way::AnswersLost => self.simulator.call(request).await,
            Way::Troubled(random) => {
                // No real time goes by: tests are `start_paused`. What is dropped meanwhile never gets there.
                tokio::time::sleep(Duration::from_millis(random % 300)).await;
                self.simulator.call(request).await
            }
        }
    }

    /// Decides on the way of one request; in trouble, each has its own.
    fn take_way(&self) -> Way {
        let mut way = self.way.lock();
        let Way::Troubled(seed) = &mut *way else { return *way };
        let mut random = fastrand::Rng::with_seed(*seed);
        *seed = random.u64(..);
        match random.u8(..10) {
            0 => Way::Refused,
            1 => Way::Silent,
            2 => Way::AnswersLost,
            _ => Way::Troubled(random.u64(..)),
        }
    }
}
