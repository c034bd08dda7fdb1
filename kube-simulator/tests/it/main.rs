//! Tests of behaviour that only the simulator has: faults, restarts, replicas, limits and the Rust API. Behaviour that
//! clients of any API server see is in the wire scenarios.

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
