//! The mutex and the clock of a queue: `parking_lot`'s and tokio's. With `--cfg informer_loom`, the
//! mutex is loom's, and the clock moves only when a test advances it; see `tests/loom.rs`. Rate
//! limiters always use `parking_lot`'s mutex and tokio's clock.

#[cfg(not(informer_loom))]
mod real {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::time::{Instant, Sleep, sleep_until};

    pub(crate) use parking_lot::Mutex;

    /// tokio's clock, which tests can pause.
    #[derive(Debug)]
    pub(crate) struct Clock;

    impl Clock {
        pub(crate) fn new() -> Self {
            Self
        }

        #[expect(clippy::unused_self, reason = "the clock of `model` has a state")]
        pub(crate) fn now(&self) -> Instant {
            Instant::now()
        }
    }

    /// A reusable timer, which allocates memory on first use.
    #[derive(Debug, Default)]
    pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

    impl Timer {
        pub(crate) fn poll(&mut self, _: &Clock, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
            let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if sleep.deadline() != at {
                sleep.as_mut().reset(at);
            }
            sleep.as_mut().poll(cx)
        }
    }
}

/// Models of the types in module `real`, built from loom's primitives.
#[cfg(informer_loom)]
mod model {
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use tokio::time::Instant;

    /// loom's mutex with parking_lot's signature.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no thread of the model has panicked")
        }
    }

    /// A clock that moves only when it is advanced.
    #[derive(Debug)]
    pub(crate) struct Clock(Mutex<Time>);

    #[derive(Debug)]
    struct Time {
        now: Instant,
        sleepers: Vec<(Instant, Waker)>,
    }

    impl Clock {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(Time { now: Instant::now(), sleepers: Vec::new() }))
        }

        pub(crate) fn now(&self) -> Instant {
            self.0.lock().now
        }

        pub(crate) fn advance(&self, by: Duration) {
            let woken: Vec<_> = {
                let mut time = self.0.lock();
                time.now += by;
                let now = time.now;
                time.sleepers.extract_if(.., |(at, _)| *at <= now).collect()
            };
            woken.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Timer;

    impl Timer {
        #[expect(clippy::unused_self, reason = "the timer of `real` has a state")]
        pub(crate) fn poll(&mut self, clock: &Clock, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
            let mut time = clock.0.lock();
            if time.now >= at {
                return Poll::Ready(());
            }
            time.sleepers.push((at, cx.waker().clone()));
            Poll::Pending
        }
    }
}

#[cfg(informer_loom)]
pub(crate) use model::{Clock, Mutex, Timer};
#[cfg(not(informer_loom))]
pub(crate) use real::{Clock, Mutex, Timer};
