//! The end-to-end tests: informers against a real kube-apiserver, which `cargo xtask e2e` starts.
//!
//! They hold with and without controller-manager, scheduler and KWOK: whatever else is at work only
//! makes for more changes to follow. Each test has a namespace, labels or an API group of its own,
//! so that they can run side by side. Nothing is cleaned up: the control plane is thrown away
//! afterwards. The tests in `long` take minutes; `--long` runs them.

mod cluster;
mod controllers;
mod credentials;
mod custom_resources;
mod derived;
mod election;
mod expiry;
mod factory;
mod following;
mod forms;
mod groups;
mod http2;
mod interruptions;
mod journal;
mod kinds;
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

/// Long enough for anything that is going to happen at all; a CRD, or a right that was granted, is
/// noticed with the next try, and tries are up to a minute apart.
const PATIENCE: Duration = Duration::from_secs(120);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it should have happened by now")
}

/// Asks again and again until there is an answer: for what is only on the server, where no event
/// tells of it.
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

/// Checks for so long that something holds.
async fn stays(long: Duration, holds: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let checked = async {
        loop {
            ticks.tick().await;
            assert!(holds(), "it should have stayed so");
        }
    };
    let Err(_) = tokio::time::timeout(long, checked).await;
}
