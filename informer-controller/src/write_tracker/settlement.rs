//! [`Settlement`]: finds out what came of a write whose outcome is unknown, by a read of its object.
//!
//! The object as the server has it after the request has failed is what the cache has to come to, whether or not the write
//! was applied. The read is made by the task that waits for the key, so that no worker waits for a server that is in trouble.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use informer_core::{ListWatchError, ObjectKey};
use kube::Resource;
use tokio::time::{sleep, timeout};

use super::pending::Awaited;
use informer_factory::__private::writes;
use informer_factory::SharedIndexInformer;

/// How long a read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The waits between reads that fail.
const MIN_WAIT: Duration = Duration::from_millis(200);
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Reads what the cache has to come to; `None` if it is there already.
type Read = dyn Fn() -> BoxFuture<'static, Result<Option<Awaited>, ListWatchError>> + Send + Sync;

/// The way to find out what came of a write.
#[derive(Clone)]
pub(super) struct Settlement(Arc<Read>);

impl Settlement {
    /// Returns the way to find out about writes of `object`, if the server can be asked for it.
    pub(super) fn of<K: Resource + Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        object: &ObjectKey,
    ) -> Option<Self> {
        let can_be_read = writes::read(informer, object).is_some();
        let (informer, object) = (informer.clone(), object.clone());
        can_be_read.then(|| {
            Self(Arc::new(move || {
                let Some(read) = writes::read(&informer, &object) else { return async { Ok(None) }.boxed() };
                let (informer, object) = (informer.clone(), object.clone());
                async move {
                    Ok(match read.await? {
                        Ok(found) => Awaited::write(&informer, &found),
                        Err(version) => Awaited::absence(&informer, &object, version),
                    })
                }
                .boxed()
            }))
        })
    }

    /// Reads until the server answers, and returns what the cache has to come to.
    pub(super) async fn settle(&self) -> Option<Awaited> {
        let mut wait = MIN_WAIT;
        loop {
            match timeout(READ_TIMEOUT, (self.0)()).await {
                Ok(Ok(awaited)) => return awaited,
                Ok(Err(error)) => {
                    tracing::debug!(%error, retry_in = ?wait, "the object of a write could not be read");
                }
                Err(_) => tracing::debug!(retry_in = ?wait, "a read of the object of a write timed out"),
            }
            sleep(wait).await;
            wait = MAX_WAIT.min(wait * 2);
        }
    }
}
