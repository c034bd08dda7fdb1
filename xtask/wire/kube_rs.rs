//! A client with kube-runtime: a watcher, whose events a reflector writes to a store. It uses the
//! allocator mimalloc, like the client of `ours.rs`.

mod meter;
mod protocol;

use std::sync::Arc;

use anyhow::{Context, bail};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use kube_runtime::watcher::{self, Config, Event, watcher};
use kube_runtime::{WatchStreamExt, reflector};
use tokio::sync::oneshot;

use self::meter::Meter;
use self::protocol::{Plan, print, wait_for_start};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let plan = Plan::from_args()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
    runtime.block_on(async {
        match plan.form.as_str() {
            "whole" => run(&plan, |_| {}).await,
            // The documentation of `reflector` recommends this to save memory.
            "pruned" => run(&plan, |pod| pod.managed_fields_mut().clear()).await,
            form => bail!("the argument FORM has the unknown value `{form}`; use `whole` or `pruned`"),
        }
    })
}

async fn run(plan: &Plan, prune: fn(&mut Pod)) -> anyhow::Result<()> {
    if plan.handlers != 1 {
        bail!("this client supports only one handler; set HANDLERS to 1");
    }
    let config = kube::Config::new(plan.server.parse().context("the argument SERVER is not a URL")?);
    let pods: Api<Pod> = Api::all(Client::try_from(config)?);
    let meter = Arc::new(Meter::new(plan));
    print("ready")?;
    wait_for_start()?;
    let (synced, is_synced) = oneshot::channel();
    let config = if plan.is_list {
        // Lists from the server's cache, in one piece, like client-go.
        Config { page_size: None, ..Config::default().any_semantic() }
    } else {
        Config::default().streaming_lists()
    };
    let events = watcher(pods, config).map_ok(move |event| event.modify(prune));
    let task = tokio::spawn(follow(events, Arc::clone(&meter), synced));
    let Ok(count) = is_synced.await else {
        return task.await.context("the task that reads kube-runtime's watcher panicked")?;
    };
    print(&format!("synced {count}"))?;
    let events = meter.done().await;
    meter.write_times(plan)?;
    print(&format!("done {events}"))?;
    std::future::pending().await
}

/// Counts each update in `meter` after the store has applied it. Sends the number of objects to
/// `synced` after the first complete list.
async fn follow(
    events: impl Stream<Item = watcher::Result<Event<Pod>>> + Send,
    meter: Arc<Meter>,
    synced: oneshot::Sender<usize>,
) -> anyhow::Result<()> {
    let (store, writer) = reflector::store();
    let mut events = reflector::reflector(writer, events).default_backoff().boxed();
    let mut synced = Some(synced);
    while let Some(event) = events.next().await {
        match event? {
            Event::InitDone => {
                if let Some(synced) = synced.take() {
                    // An error means that the main task has ended.
                    synced.send(store.len()).ok();
                }
            }
            Event::Apply(pod) => {
                let version = pod.metadata.resource_version.unwrap_or_default();
                meter.observe(0, version.parse().unwrap_or_default());
            }
            Event::Init | Event::InitApply(_) | Event::Delete(_) => {}
        }
    }
    bail!("the watch ended")
}
