//! WATCH: streams of events, from the request's parameters to the bytes on the wire.

mod framing;
mod registry;
mod start;
mod stream;

pub(crate) use framing::Framing;
pub(crate) use registry::WatchRegistry;
pub use start::StreamingLists;
pub(crate) use start::{Opening, SlowWatches, WatchRules, open};
