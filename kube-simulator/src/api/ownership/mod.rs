//! `managedFields`, which records the owners of fields, and server-side apply, which uses these
//! owners.
//!
//! This is a subset of structured-merge-diff. Scalars, empty lists, empty maps, atomic lists and
//! atomic maps have owners, and so do the elements of sets and keyed lists (see [`ListKind`]). For
//! all other maps, only the owners of their fields are recorded. Fields are not converted between
//! the versions of a resource.

mod apply;
mod leaves;
mod list_kind;
mod managers;
mod merge;

pub(crate) use apply::{Conflict, apply, duplicates};
pub(crate) use list_kind::ListKind;
pub(crate) use managers::{Manager, Operation, record_write};

use serde_json::{Map, Value};

/// A JSON object.
type Body = Map<String, Value>;
