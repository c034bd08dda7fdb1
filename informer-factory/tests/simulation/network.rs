//! The network between client and servers: an in-process load balancer that logs all requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use informer_testing::{LaggingReplica, ResponseBody, Simulator};
use kube::client::Body;
use parking_lot::Mutex;
use tower::Service as _;

use crate::history::History;

/// Returns a client that sends each request to the simulator or, at random, to its replica.
pub(crate) fn client(
    simulator: &Simulator,
    replica: Option<&LaggingReplica>,
    seed: u64,
    history: &History,
) -> kube::Client {
    let mut random = fastrand::Rng::with_seed(seed);
    let slowest = [20, 200, 3_000][random.usize(..3)];
    let random = Arc::new(Mutex::new(random));
    let (main, late) = (simulator.service(), replica.map(LaggingReplica::service));
    let history = history.clone();
    let balancer = tower::service_fn(move |request: Request<Body>| {
        let (goes_late, latency, cuts) = {
            let mut random = random.lock();
            (random.u8(..3) == 0, Duration::from_millis(random.u64(..slowest)), random.fork())
        };
        let late = late.clone().filter(|_| goes_late);
        let (main, history) = (main.clone(), history.clone());
        async move {
            let name = if late.is_some() { "replica" } else { "server" };
            let description = describe(&request);
            let mut service = late.unwrap_or(main);
            // The clock is paused (`start_paused`), so no real time passes.
            tokio::time::sleep(latency).await;
            let answer: std::io::Result<Response<ResponseBody>> = service.call(request).await;
            match &answer {
                Ok(response) => history.log(format!("{name}: {description}: {}", response.status().as_u16())),
                Err(error) => history.log(format!("{name}: {description}: {}", error.kind())),
            }
            Ok::<_, std::io::Error>(answer?.map(|body| in_pieces(body, cuts)))
        }
    });
    kube::Client::new(balancer, "default")
}

fn describe(request: &Request<Body>) -> String {
    let uri = request.uri();
    format!("{} {}", uri.path(), uri.query().unwrap_or_default())
}

/// Splits the chunks of a body at random places, as networks do.
fn in_pieces(
    body: ResponseBody,
    mut random: fastrand::Rng,
) -> impl http_body::Body<Data = Bytes, Error = std::io::Error> + Send + 'static {
    let frames = BodyStream::new(body).flat_map(move |frame| {
        let pieces: Vec<_> = match frame.map(|frame| frame.into_data().unwrap_or_default()) {
            Ok(mut data) => {
                let mut pieces = Vec::new();
                while !data.is_empty() {
                    let length = random.usize(1..=data.len());
                    pieces.push(Ok(Frame::data(data.split_to(length))));
                }
                pieces
            }
            Err(error) => vec![Err(error)],
        };
        stream::iter(pieces)
    });
    StreamBody::new(frames)
}
