//! The HTTP side: from a request to a response, over a socket or in process.

mod accept;
mod body;
mod call;
mod collection;
mod documents;
mod frames;
mod goaway;
mod gzip;
mod head_limit;
mod listener;
mod manager;
mod metrics;
mod object;
mod respond;
mod route;
mod service;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod unchecked;
mod unknown_fields;
mod websocket;

pub use body::ResponseBody;
pub(crate) use goaway::Goaways;
pub(crate) use listener::Listener;
pub(crate) use respond::canned;
pub use service::Service;
pub(crate) use tls::Tls;
