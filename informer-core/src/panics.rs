//! Extracts the message of a caught panic.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message of a panic and drops its payload. If the payload's destructor panics, the
/// payload of that second panic is leaked, because its destructor could panic again.
#[doc(hidden)]
#[must_use]
pub fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text.unwrap_or_else(|| "the panic payload is not a string".to_owned())
}
