//! [`Link`]: a candidate's connection to the server, which can fail for this candidate alone.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use informer_testing::{ResponseBody, Simulator};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service as _;

/// The treatment of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Each request fails at once.
    Refused,
    /// Requests do not arrive, and there are no responses.
    Silent,
    /// The server applies a write, but its response is lost.
    AnswersLost,
    /// A random treatment for each request.
    Troubled(u64),
}

/// A candidate's connection to the server.
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
                // The clock is paused (`start_paused`). A request that is dropped during this wait
                // never arrives.
                tokio::time::sleep(Duration::from_millis(random % 300)).await;
                self.simulator.call(request).await
            }
        }
    }

    /// Returns the treatment of one request.
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
