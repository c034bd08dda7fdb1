//! [`Settlement`]: reads an object from the server, after a write to the object failed with an
//! unknown outcome.
//!
//! The key for which the write was recorded then waits until the cache has the state that the read
//! returned. So it does not matter whether the server applied the write. A
//! [`ControllerRunner`](crate::ControllerRunner) occupies no worker while it waits for this read.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use informer_core::{ListWatchError, ObjectKey};
use kube::Resource;
use tokio::time::{sleep, timeout};

use super::pending::Condition;
use informer_factory::__private::writes;
use informer_factory::SharedIndexInformer;

const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The wait after the first failed read. Each further failure doubles the wait, up to [`MAX_WAIT`].
const MIN_WAIT: Duration = Duration::from_millis(200);
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Reads one object from the server. Returns the [`Condition`] that the cache meets when it has the
/// state that was read, or `None` if no wait is necessary.
type Read = dyn Fn() -> BoxFuture<'static, Result<Option<Condition>, ListWatchError>> + Send + Sync;

/// The object of a write with an unknown outcome, and the function that reads this object.
#[derive(Clone)]
pub(super) struct Settlement {
    /// The resource and its scope, for log lines. Example: `pods in namespace "shop"`.
    resource: Arc<str>,
    object: ObjectKey,
    read: Arc<Read>,
    /// Whether the server rejected the last attempt of the write.
    ///
    /// The object is read nevertheless, because an earlier attempt was possibly applied. If the
    /// read fails with [`ListWatchError::InvalidRequest`], the write counts as rejected, and the
    /// key does not wait. For example, the program did not set the namespace of the written object,
    /// and several namespaces have an object with this name.
    pub(super) is_probably_rejected: bool,
}

impl Settlement {
    /// Returns a `Settlement` for a write to `object` with an unknown outcome. Returns `None` if
    /// the informer cannot read single objects, or does not watch the object's namespace.
    pub(super) fn of<K: Resource + Send + Sync + 'static>(
        informer: &SharedIndexInformer<K>,
        object: &ObjectKey,
    ) -> Option<Self> {
        let can_be_read = writes::read(informer, object).is_some();
        can_be_read.then(|| {
            let resource = informer.status().description().into();
            let (informer, key) = (informer.clone(), object.clone());
            let read: Arc<Read> = Arc::new(move || {
                let Some(read) = writes::read(&informer, &key) else { return async { Ok(None) }.boxed() };
                let (informer, key) = (informer.clone(), key.clone());
                async move {
                    Ok(match read.await? {
                        Ok(found) => Condition::write(&informer, &found),
                        Err(version) => Some(Condition::for_missing_object(&informer, &key, version)),
                    })
                }
                .boxed()
            });
            Self { resource, object: object.clone(), read, is_probably_rejected: false }
        })
    }

    /// Reads the object from the server. Repeats a failed read until a read succeeds; the caller
    /// limits the time.
    ///
    /// Returns the [`Condition`] that the cache meets when it has the state that was read. Returns
    /// `None` if the key does not have to wait:
    ///
    /// - The informer no longer watches the namespace of the object.
    /// - The object's resource version is not comparable.
    /// - The write [was probably rejected](Self::is_probably_rejected), and the read fails with
    ///   [`ListWatchError::InvalidRequest`]. If the write was not rejected, this read is repeated,
    ///   too.
    pub(super) async fn settle(&self) -> Option<Condition> {
        let (resource, key, mut wait) = (&self.resource, &self.object, MIN_WAIT);
        loop {
            match timeout(READ_TIMEOUT, (self.read)()).await {
                Ok(Ok(condition)) => return condition,
                Ok(Err(ListWatchError::InvalidRequest(_))) if self.is_probably_rejected => return None,
                Ok(Err(error)) => {
                    tracing::debug!(
                        %resource, %key, %error, retry_in = ?wait,
                        "outcome of a write is still unknown: failed to read the object; retrying"
                    );
                }
                Err(_) => {
                    tracing::debug!(
                        %resource, %key, retry_in = ?wait,
                        "outcome of a write is still unknown: reading the object timed out; retrying"
                    );
                }
            }
            sleep(wait).await;
            wait = MAX_WAIT.min(wait * 2);
        }
    }
}
