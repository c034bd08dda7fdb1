//! The guarantees of cache controllers and shared informers, over in-memory objects: no HTTP, and a
//! paused clock. One test per behavior, most of them after client-go's `controller_test.go` and
//! `shared_informer_test.go`.

mod cache_controller;
mod disruptions;
mod fixture;
mod handlers;
mod indexes;
mod log;
mod namespaces;
mod oddities;
mod outages;
mod relist;
mod resyncs;
mod server;
mod stopping;
mod streams;
mod verifying;
mod waiting;

use fixture::*;
