//! Controllers over informers with in-memory objects: no HTTP, and a paused clock.

#[allow(dead_code, reason = "some items are used only by the tests of informer-factory")]
#[path = "../../../informer-factory/tests/memory/fixture.rs"]
mod fixture;
#[path = "../../../informer-factory/tests/memory/log.rs"]
mod log;
mod namespaces;
mod runner;
#[allow(dead_code, reason = "some items are used only by the tests of informer-factory")]
#[path = "../../../informer-factory/tests/memory/server.rs"]
mod server;
mod write_tracker;

use fixture::*;
