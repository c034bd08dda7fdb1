//! Tests of behavior that only the simulator has: faults, restarts, replicas, limits and the Rust
//! API. The wire scenarios test the behavior that clients of any API server observe.

mod cascades;
mod clusters;
mod corruption;
mod definitions;
mod discovery;
mod disturbances;
mod encodings;
mod faults;
mod history;
mod http2;
mod limits;
mod listing;
mod plans;
mod protobuf;
mod replicas;
mod restarts;
mod serving;
mod shutdowns;
mod support;
mod timeouts;
mod watch_cache;
mod watching;
mod websockets;
mod writing;
