//! The simulator seen from outside: over its socket with kube's client, and in process where clocks matter.

mod applying;
mod cascades;
mod clusters;
mod corruption;
mod definitions;
mod discovery;
mod disturbances;
mod encodings;
mod faults;
mod forms;
mod history;
mod http2;
mod listing;
mod memory_source;
mod plans;
mod protobuf;
mod replicas;
mod restarts;
mod serving;
mod shutdowns;
mod subresources;
mod support;
mod watch_cache;
mod watching;
mod websockets;
mod writing;
