//! The HTTP side: from a request to a response, over a socket or in process.

mod accept;
mod body;
mod call;
mod collection;
mod documents;
mod gzip;
mod listener;
mod object;
mod respond;
mod route;
mod service;
mod unknown_fields;
mod websocket;

pub use body::ResponseBody;
pub(crate) use listener::Listener;
pub(crate) use respond::canned;
pub use service::Service;
