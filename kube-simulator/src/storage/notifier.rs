//! [`Notifier`]: wakes all who listen, in the order in which they began to.
//!
//! tokio's `watch` channel would do, but for the order: it wakes its receivers in a random one, and then no run with two
//! watches could be repeated exactly.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wakes all who listen.
#[derive(Debug, Default)]
pub(crate) struct Notifier(Mutex<Vec<Weak<Notify>>>);

/// Hears each ring from its making on; of several between two waits, one.
#[derive(Debug)]
pub(crate) struct Listener(Arc<Notify>);

impl Notifier {
    pub(crate) fn listen(&self) -> Listener {
        let listener = Arc::new(Notify::new());
        let mut listeners = self.0.lock();
        // Those who have gone are forgotten here, too: where nothing rings, many may come and go. Only now and then, so that
        // many who stay are not counted each time that one more comes.
        if listeners.len() == listeners.capacity() {
            listeners.retain(|listener| listener.strong_count() > 0);
        }
        listeners.push(Arc::downgrade(&listener));
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

#[cfg(test)]
mod tests {
    //! Who is kept in mind.

    use super::Notifier;

    #[test]
    fn those_who_have_gone_are_forgotten_though_nothing_rings() {
        let bell = Notifier::default();
        let stays = bell.listen();
        for _ in 0..1_000 {
            drop(bell.listen());
        }
        assert!(bell.0.lock().len() < 10, "{bell:?}");
        drop(stays);
    }
}
