//! The simulator seen from outside: over its socket with kube's client, and in process where clocks matter.

mod clusters;
mod disturbances;
mod faults;
mod listing;
mod memory_source;
mod plans;
mod replicas;
mod restarts;
mod serving;
mod support;
mod watching;
mod writing;
