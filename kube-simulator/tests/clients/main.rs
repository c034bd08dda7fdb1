//! Unchanged programs against the simulator: the real `kubectl`, and an informer of client-go.
//!
//! `cargo xtask e2e` builds both programs and starts a real API server. `kubectl` must print the
//! same on the simulator as on that server. Each test has its own namespace.

mod client_go;
mod comparing;
mod deleting;
mod kubectl;
mod waiting;
mod watching;
