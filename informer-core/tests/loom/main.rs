//! Loom models of the queue and the processor: they explore the thread interleavings at locks and
//! wake-ups.
//!
//! `cargo xtask loom` runs them; in an ordinary build this file is empty.
#![cfg(informer_loom)]

mod processor;
mod queue;

/// Explores all interleavings of the threads in `f` with at most three preemptions; nearly all bugs
/// need at most two preemptions.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}
