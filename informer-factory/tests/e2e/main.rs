//! The end-to-end tests: informers against a real kube-apiserver, which `cargo xtask e2e` starts.
//!
//! They pass with and without controller-manager, scheduler and KWOK, which only cause more
//! changes. Each test has its own namespace, labels or API group, so that tests can run in
//! parallel. Tests do not clean up, because the control plane is deleted afterwards. The tests in
//! `long` take minutes; `--long` runs them.

mod cluster;
mod controllers;
mod credentials;
mod custom_resources;
mod derived;
mod election;
mod expiry;
mod factory;
mod forms;
mod groups;
mod http2;
mod interruptions;
mod journal;
mod kinds;
mod lifecycles;
#[path = "../memory/log.rs"]
mod log;
mod long;
mod namespaces;
mod network;
mod objects;
mod outages;
mod paging;
mod proxy;
mod selectors;
mod streams;
mod witnesses;
mod workloads;
mod writes;

use std::time::Duration;

/// The timeout of each wait. A new CRD or permission takes effect with the next retry, up to a
/// minute later.
const TIMEOUT: Duration = Duration::from_secs(120);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, future).await.expect("the wait ends in time")
}

/// Polls until `ask` returns a value. Use it for server state that no event reports.
async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    within(async {
        loop {
            ticks.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    })
    .await
}

/// Checks for the whole duration that `holds` returns `true`.
async fn stays(long: Duration, holds: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let checked = async {
        loop {
            ticks.tick().await;
            assert!(holds(), "the condition no longer holds");
        }
    };
    let Err(_) = tokio::time::timeout(long, checked).await;
}
