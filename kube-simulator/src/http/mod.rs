//! The HTTP layer: answers all requests, which arrive over a socket or in process.

mod accept;
mod body;
mod call;
mod collection;
mod credentials;
mod discovery;
mod documents;
mod encoding;
mod frames;
mod goaway;
mod gzip;
mod head_limit;
mod listener;
mod manager;
mod metrics;
mod object;
mod openapi;
mod patch;
mod request;
mod respond;
mod route;
mod server;
mod service;
mod shape;
mod timeout;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod unchecked;
mod unknown_fields;
mod watch;
#[cfg_attr(not(feature = "websocket"), path = "no_websocket.rs")]
mod websocket;

pub use body::ResponseBody;
pub(crate) use listener::Listener;
pub use request::{RecordedRequest, RequestFilter, Verb};
pub(crate) use respond::canned;
pub(crate) use server::{Server, Settings};
pub use service::Service;
pub(crate) use tls::Tls;
pub use watch::StreamingLists;
pub(crate) use watch::{SlowWatches, WatchRules};
