//! Every order in which threads can meet at the locks and wake-ups of queue and processor, tried
//! one by one with loom.
//!
//! `cargo xtask loom` runs these; in an ordinary build this file is empty.
#![cfg(informer_loom)]

mod processor;
mod queue;

/// Tries every order of the threads in `f` that takes up to three switches where a thread could
/// have gone on; nearly all bugs show with two.
fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}
