//! Synchronization primitives of this crate. With `--cfg informer_loom`, these are primitives of
//! loom and models built from them, so that `tests/loom` can run all interleavings of threads with
//! at most three preemptions.

#[cfg(not(informer_loom))]
mod real {
    use tokio_util::sync::CancellationToken;

    pub(crate) use parking_lot::Mutex;
    pub(crate) use tokio::sync::Notify;

    /// A flag that is set once and can be awaited.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Latch(CancellationToken);

    impl Latch {
        pub(crate) fn set(&self) {
            self.0.cancel();
        }

        pub(crate) async fn wait(&self) {
            self.0.cancelled().await;
        }
    }
}

/// Types with those methods of the types in module `real` that this crate uses, built from loom's
/// primitives.
#[cfg(informer_loom)]
mod model {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    /// loom's mutex with parking_lot's signature.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no thread of the model has panicked")
        }

        pub(crate) fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    /// A model of `tokio::sync::Notify`, with the permits of `notify_one` and the broadcasts of
    /// `notify_waiters`.
    #[derive(Debug, Default)]
    pub(crate) struct Notify(Mutex<Waiters>);

    #[derive(Debug, Default)]
    struct Waiters {
        permit: bool,
        /// How often [`Notify::notify_waiters`] has been called. A [`Notified`] future is ready
        /// once this number differs from the number at the future's creation.
        broadcasts: u64,
        next: u64,
        waiting: Vec<(u64, Waker)>,
        /// The IDs of [`Notified`] futures that have been woken with a permit of
        /// [`Notify::notify_one`]. An ID is removed when its future is polled or dropped.
        chosen: Vec<u64>,
    }

    impl Waiters {
        fn choose_one(&mut self) -> Option<Waker> {
            if self.waiting.is_empty() {
                self.permit = true;
                return None;
            }
            let (id, waker) = self.waiting.remove(0);
            self.chosen.push(id);
            Some(waker)
        }
    }

    impl Notify {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn notify_one(&self) {
            let waker = self.0.lock().choose_one();
            waker.into_iter().for_each(Waker::wake);
        }

        pub(crate) fn notify_waiters(&self) {
            let waiting = {
                let mut waiters = self.0.lock();
                waiters.broadcasts += 1;
                std::mem::take(&mut waiters.waiting)
            };
            waiting.into_iter().for_each(|(_, waker)| waker.wake());
        }

        pub(crate) fn notified(&self) -> Notified<'_> {
            let mut waiters = self.0.lock();
            waiters.next += 1;
            Notified { notify: self, id: waiters.next, broadcasts: waiters.broadcasts, done: false }
        }
    }

    pub(crate) struct Notified<'a> {
        notify: &'a Notify,
        id: u64,
        broadcasts: u64,
        done: bool,
    }

    impl Future for Notified<'_> {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let (id, broadcasts) = (self.id, self.broadcasts);
            let ready = {
                let mut waiters = self.notify.0.lock();
                let chosen = waiters.chosen.iter().position(|other| *other == id);
                if let Some(position) = chosen {
                    waiters.chosen.remove(position);
                }
                waiters.waiting.retain(|(other, _)| *other != id);
                let ready = chosen.is_some()
                    || waiters.broadcasts != broadcasts
                    || std::mem::take(&mut waiters.permit);
                if !ready {
                    waiters.waiting.push((id, cx.waker().clone()));
                }
                ready
            };
            self.done |= ready;
            if ready { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    impl Drop for Notified<'_> {
        fn drop(&mut self) {
            if self.done {
                return;
            }
            // The unused permit passes to the next waiter.
            let waker = {
                let mut waiters = self.notify.0.lock();
                let id = self.id;
                waiters.waiting.retain(|(other, _)| *other != id);
                let chosen = waiters.chosen.iter().position(|other| *other == id);
                chosen.and_then(|position| {
                    waiters.chosen.remove(position);
                    waiters.choose_one()
                })
            };
            waker.into_iter().for_each(Waker::wake);
        }
    }

    #[derive(Debug, Clone, Default)]
    pub(crate) struct Latch(Arc<(Mutex<bool>, Notify)>);

    impl Latch {
        pub(crate) fn set(&self) {
            *self.0.0.lock() = true;
            self.0.1.notify_waiters();
        }

        pub(crate) async fn wait(&self) {
            let woken = self.0.1.notified();
            if !*self.0.0.lock() {
                woken.await;
            }
        }
    }
}

#[cfg(informer_loom)]
pub(crate) use loom::sync::atomic;
#[cfg(informer_loom)]
pub(crate) use model::{Latch, Mutex, Notify};
#[cfg(not(informer_loom))]
pub(crate) use real::{Latch, Mutex, Notify};
#[cfg(not(informer_loom))]
pub(crate) use std::sync::atomic;
