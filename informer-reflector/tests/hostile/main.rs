//! A hostile server, one class of hostility per file: whatever it answers, the reflector stays within its bounds of
//! requests, log lines and memory, says what is wrong, and recovers once the server is good.
//!
//! The client is kube's, over an in-memory connection with real HTTP, on a paused clock.

mod bytes;
mod compression;
mod decoding;
mod floods;
mod framing;
mod http2;
#[allow(dead_code, reason = "shared with the tests of the reflector")]
#[path = "../reflector/log.rs"]
mod log;
mod meter;
mod objects;
#[allow(dead_code, reason = "shared with the tests of the reflector")]
#[path = "../reflector/script.rs"]
mod script;
mod sequences;
mod server;
mod tokens;
mod versions;
