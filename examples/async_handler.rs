//! An async handler: it sends the key of each failed pod to a channel, and waits while the channel is full.
//!
//! ```text
//! cargo run --example async_handler     # with the current context of the kubeconfig, until Ctrl-C
//! ```

use std::error::Error;

use async_trait::async_trait;
use informer_factory::{AsyncEventHandler, Cached, ObjectKey, SharedInformerFactory};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::sync::mpsc::{Sender, channel};

struct FailedPods(Sender<ObjectKey>);

#[async_trait]
impl AsyncEventHandler<Pod> for FailedPods {
    async fn on_add(&self, pod: &Cached<Pod>, _is_in_initial_list: bool) {
        self.on_update(pod, pod).await;
    }

    // While this call waits, further events are queued. If 1,024 or more are waiting, new events of
    // the same pod are merged.
    async fn on_update(&self, _old: &Cached<Pod>, pod: &Cached<Pod>) {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if phase == Some("Failed") {
            _ = self.0.send(pod.key().clone()).await;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let factory = SharedInformerFactory::new(Client::try_default().await?);
    let (send, mut failed) = channel(16);
    factory.core().v1().pods().add_async_event_handler(FailedPods(send)).detach();
    factory.start();
    tokio::spawn(async move {
        while let Some(key) = failed.recv().await {
            println!("pod {key} failed");
        }
    });
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}
