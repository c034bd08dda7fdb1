//! [`MoveDetector`]: records the node of each pod, and detects pods that a scheduler moved.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer_factory::{
    Cached, HandlerOptions, HandlerRegistration, Handlers, ObjectKey, SharedInformerFactory,
};
use kube::Client;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::views::{PodDemand, PodDemandInformers};

pub(crate) struct MoveDetector {
    book: Arc<Mutex<Book>>,
    bound: watch::Receiver<usize>,
    handler: HandlerRegistration,
    factory: SharedInformerFactory,
}

#[derive(Default)]
struct Book {
    /// The node of each existing pod.
    places: HashMap<ObjectKey, String>,
    /// Pods that changed from one node to another.
    moved: Vec<ObjectKey>,
}

impl MoveDetector {
    pub(crate) async fn start(client: Client, namespace: &str) -> Result<Self, Box<dyn Error>> {
        let factory = SharedInformerFactory::new(client).in_namespace(namespace);
        let pods = factory.core().v1().pod_demands();
        let (book, count) = (Arc::<Mutex<Book>>::default(), Arc::new(watch::Sender::new(0)));
        let bound = count.subscribe();
        let see = {
            let book = Arc::clone(&book);
            Arc::new(move |pod: &Cached<PodDemand>| {
                let Some(node) = &pod.spec.node_name else { return };
                let mut book = book.lock().unwrap_or_else(PoisonError::into_inner);
                match book.places.insert(pod.key().clone(), node.clone()) {
                    None => count.send_modify(|count| *count += 1),
                    Some(before) if before != *node => book.moved.push(pod.key().clone()),
                    Some(_) => {}
                }
            })
        };
        let (add, update, delete) = (Arc::clone(&see), see, Arc::clone(&book));
        let handlers = Handlers::new()
            .on_add(move |pod: &Cached<PodDemand>, _| add(pod))
            .on_update(move |_, new: &Cached<PodDemand>| update(new))
            .on_delete(move |pod| {
                let mut book = delete.lock().unwrap_or_else(PoisonError::into_inner);
                book.places.remove(pod.key());
            });
        // Without a threshold the handler receives every event, even if it is slow.
        let options = HandlerOptions::new().name("detector").threshold(None);
        let handler = pods.add_event_handler_with(handlers, &options);
        factory.start();
        factory.wait_for_cache_sync().await?;
        Ok(Self { book, bound, handler, factory })
    }

    /// Waits until `count` pods have been bound since the start, including pods that have been
    /// deleted since.
    pub(crate) async fn bound(&mut self, count: usize) -> Result<usize, Box<dyn Error>> {
        let enough = self.bound.wait_for(|bound| *bound >= count);
        if let Ok(bound) = timeout(Duration::from_secs(300), enough).await {
            return Ok(*bound?);
        }
        Err(format!("only {} of {count} pods are bound after 5 minutes", *self.bound.borrow()).into())
    }

    /// Returns every `n`th bound pod.
    pub(crate) fn every(&self, n: usize) -> Vec<ObjectKey> {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.places.keys().step_by(n).cloned().collect()
    }

    /// Stops the detector, and returns the pods that were bound to two nodes.
    pub(crate) async fn end(self) -> Vec<ObjectKey> {
        drop(self.handler);
        self.factory.shutdown().await;
        std::mem::take(&mut self.book.lock().unwrap_or_else(PoisonError::into_inner).moved)
    }
}
