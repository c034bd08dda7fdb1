//! Tests of the simulator's public interface: over its socket with kube's client, and in process with a paused clock.

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
