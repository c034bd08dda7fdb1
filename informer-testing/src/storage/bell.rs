//! [`Bell`]: wakes all who listen, in the order in which they began to.
//!
//! tokio's `watch` channel would do, but for the order: it wakes its receivers in a random one, and then no run with two
//! watches could be repeated exactly.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wakes all who listen.
#[derive(Debug, Default)]
pub(crate) struct Bell(Mutex<Vec<Weak<Notify>>>);

/// Hears each ring from its making on; of several between two waits, one.
#[derive(Debug)]
pub(crate) struct Listener(Arc<Notify>);

impl Bell {
    pub(crate) fn listen(&self) -> Listener {
        let listener = Arc::new(Notify::new());
        self.0.lock().push(Arc::downgrade(&listener));
        Listener(listener)
    }

    pub(crate) fn ring(&self) {
        // Those who have gone are forgotten on the way.
        self.0.lock().retain(|listener| {
            listener.upgrade().is_some_and(|listener| {
                listener.notify_one();
                true
            })
        });
    }
}

impl Listener {
    /// Waits for a ring, if there has been none since the last wait.
    pub(crate) async fn heard(&self) {
        self.0.notified().await;
    }
}
