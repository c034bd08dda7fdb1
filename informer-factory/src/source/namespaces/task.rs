//! [`NamespacesTask`]: runs the reflectors of an informer's namespaces, as futures joined in one task.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::Resource;
use tokio_util::sync::CancellationToken;

use super::{Joining, Namespaces};
use crate::source::SourceStatus;

impl<K: Resource + Send + Sync + 'static> Joining<K> {
    /// Lists and watches until the namespace is removed, and then lets it go.
    async fn follow(self) {
        if let Some(before) = self.before {
            before.cancelled().await;
        }
        self.reflector.run(self.removed).await;
        self.feed.release();
        self.released.cancel();
    }
}

/// The work of following namespaces that come and go.
pub(crate) struct NamespacesTask<K: 'static> {
    namespaces: Arc<Namespaces<K>>,
}

impl<K: Resource + Send + Sync + 'static> NamespacesTask<K> {
    pub(in crate::source) fn new(namespaces: Arc<Namespaces<K>>) -> Self {
        Self { namespaces }
    }

    /// From here on, what is added is not of the first list.
    pub(in crate::source) fn begin(&self) {
        self.namespaces.queue.start_feeds();
    }

    pub(in crate::source) async fn run(self, shutdown: CancellationToken) {
        let Namespaces { state, joined, .. } = self.namespaces.as_ref();
        let mut following = FuturesUnordered::new();
        loop {
            let waiting = std::mem::take(&mut state.lock().waiting);
            following.extend(waiting.into_iter().map(Joining::follow));
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = joined.notified() => {}
                // One has been removed.
                Some(()) = following.next() => {}
            }
        }
    }
}

impl<K: 'static> NamespacesTask<K> {
    pub(in crate::source) fn status(&self) -> SourceStatus {
        self.namespaces.status()
    }
}

impl<K: 'static> Drop for NamespacesTask<K> {
    fn drop(&mut self) {
        self.namespaces.end();
    }
}
