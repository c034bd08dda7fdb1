//! The programs that people use, unchanged, against the simulator: the real `kubectl`, and an informer of client-go.
//!
//! `cargo xtask e2e` builds both and starts a real API server, for `kubectl` has to say of the simulator, word for word,
//! what it says of that. Each test has a namespace of its own.

mod client_go;
mod comparing;
mod deleting;
mod kubectl;
mod waiting;
mod watching;
