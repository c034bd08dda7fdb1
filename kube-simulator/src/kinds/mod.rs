//! Facts about kinds: names, scope, subresources, columns, and how the server treats objects of
//! each kind.

mod built_in;
mod column;
mod facts;
mod merging;
mod resource;
mod table;

pub(crate) use built_in::kinds as built_in;
pub(crate) use column::Column;
pub(crate) use facts::{ALL_VERBS, Facts};
pub use resource::ResourceKind;
pub(crate) use resource::{CLIENT_METADATA, Scale};
