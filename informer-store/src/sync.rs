//! The locks of a store, which are those of `parking_lot`. With `--cfg informer_loom`, loom's
//! locks with the same signatures replace them, so that `tests/loom.rs` can explore the
//! interleavings of threads.

#[cfg(not(informer_loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(informer_loom))]
pub(crate) use unmodelled::Condvar;

#[cfg(informer_loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(informer_loom)]
pub(crate) use modelled::{Condvar, Mutex, RwLock};

#[cfg(not(informer_loom))]
mod unmodelled {
    use parking_lot::MutexGuard;

    /// `parking_lot`'s condition variable with the signature of the one in `modelled`.
    pub(crate) struct Condvar(parking_lot::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(parking_lot::Condvar::new())
        }

        pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}

#[cfg(informer_loom)]
mod modelled {
    use loom::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    const POISONED: &str = "no thread of a model panics while it holds a lock";

    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect(POISONED)
        }
    }

    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Condvar::new())
        }

        pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(guard).expect(POISONED)
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }
    }

    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect(POISONED)
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect(POISONED)
        }
    }
}
