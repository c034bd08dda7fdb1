//! The simulator seen from outside: over its socket with kube's client, and in process where clocks matter.

mod clusters;
mod faults;
mod listing;
mod memory_source;
mod serving;
mod support;
mod watching;
mod writing;
