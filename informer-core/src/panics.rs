//! What to do with the payload of a caught panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops the payload of a panic. If that panics, too, then the second payload is leaked: it may be of the same kind.
#[doc(hidden)]
pub fn discard_panic(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}
