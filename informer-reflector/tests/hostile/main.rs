//! A hostile server, one class of responses per file. For every response, the number of requests,
//! log lines and bytes of memory stays bounded; the reflector reports the error, and recovers once
//! the server sends valid responses.
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
