//! A server with a long outage: the waits between requests, and the recovery.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use informer_core::ListerWatcher;
use informer_core::{ListOptions, ListStream, WatchOptions, WatchStream};
use informer_factory::{HandlerOptions, InformerOptions, ListWatchError};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Running, create, listen, source};

/// A server that is unreachable until `back`, and records the time of each request.
struct UnreachableServer {
    source: MemorySource<ConfigMap>,
    back: Instant,
    request_times: Arc<Mutex<Vec<Instant>>>,
}

impl UnreachableServer {
    fn answer(&self) -> Result<&MemorySource<ConfigMap>, ListWatchError> {
        let now = Instant::now();
        self.request_times.lock().push(now);
        if now < self.back { Err(ListWatchError::Unreachable("away".into())) } else { Ok(&self.source) }
    }
}

#[async_trait]
impl ListerWatcher<ConfigMap> for UnreachableServer {
    fn description(&self) -> &str {
        "configmaps"
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<ConfigMap>, ListWatchError> {
        self.answer()?.list(options).await
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<ConfigMap>, ListWatchError> {
        self.answer()?.watch(options).await
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_with_the_outage_up_to_a_limit() {
    const OUTAGE: Duration = Duration::from_secs(600);
    let source = source();
    create(&source, "a", "1");
    let request_times = Arc::default();
    let away = UnreachableServer {
        source,
        back: Instant::now() + OUTAGE,
        request_times: Arc::clone(&request_times),
    };
    let running = Running::over(Arc::new(away), InformerOptions::new()).synced().await;
    let (_registration, mut recorded) = listen(&running.informer, &HandlerOptions::new());
    assert_eq!(recorded.next().await, "+a=1!");
    let request_times = request_times.lock().clone();
    let failed_lists = request_times.iter().filter(|at| **at < request_times[0] + OUTAGE).count();
    let waits: Vec<_> =
        request_times.windows(2).take(failed_lists).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    // client-go's backoff: a wait of 0.8 s that doubles up to 30 s, plus a random part of at most the
    // same length. No wait is longer than 1.6 s or half of the outage so far, whichever is longer.
    let (mut least, mut so_far) = (0.8_f64, 0.0);
    for (number, wait) in waits.iter().enumerate() {
        let half = (so_far / 2.0_f64).max(1.6);
        let expected = least.min(half) - 0.01..(2.0 * least).min(half) + 0.01;
        assert!(expected.contains(wait), "wait {number} of {waits:?}");
        least = (least * 2.0).min(30.0);
        so_far += wait;
    }
    assert!((15..=30).contains(&failed_lists), "{failed_lists} failed lists");
    running.stop().await;
}
