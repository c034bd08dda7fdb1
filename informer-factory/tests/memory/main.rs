//! What cache controllers and shared informers promise their users, over objects in memory: no
//! HTTP, and time stands still unless a test moves it. One test per behaviour, most of them after
//! client-go's `controller_test.go` and `shared_informer_test.go`.

mod cache_controller;
mod disruptions;
mod fixture;
mod handlers;
mod indices;
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
