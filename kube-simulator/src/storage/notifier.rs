//! [`Notifier`]: wakes all listeners in the order of their creation.
//!
//! tokio's `watch` channel wakes its receivers in random order, so runs with two watches would not
//! be reproducible.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Notifier(Mutex<Vec<Weak<Notify>>>);

/// Receives a [`Notifier`]'s notifications. Notifications before a wait are kept, and count as one.
#[derive(Debug)]
pub(crate) struct Listener(Arc<Notify>);

impl Notifier {
    pub(crate) fn listen(&self) -> Listener {
        let listener = Arc::new(Notify::new());
        let mut listeners = self.0.lock();
        // Removes dropped listeners here too, because some notifiers never notify. The removal runs
        // only when the vector is full, because it visits all listeners.
        if listeners.len() == listeners.capacity() {
            listeners.retain(|listener| listener.strong_count() > 0);
        }
        listeners.push(Arc::downgrade(&listener));
        Listener(listener)
    }

    pub(crate) fn notify_all(&self) {
        // Removes dropped listeners.
        self.0.lock().retain(|listener| listener.upgrade().inspect(|found| found.notify_one()).is_some());
    }
}

impl Listener {
    pub(crate) async fn notified(&self) {
        self.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the list of listeners.

    use super::Notifier;

    #[test]
    fn listen_removes_dropped_listeners() {
        let notifier = Notifier::default();
        let stays = notifier.listen();
        for _ in 0..1_000 {
            drop(notifier.listen());
        }
        assert!(notifier.0.lock().len() < 10, "{notifier:?}");
        drop(stays);
    }
}
