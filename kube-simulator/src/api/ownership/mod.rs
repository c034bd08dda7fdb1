//! `managedFields`, which records the owners of fields, and server-side apply, which uses these
//! owners.
//!
//! This is a subset of structured-merge-diff. Only leaves have owners, such as scalars, atomic
//! lists, and elements of sets. Fields are not converted between the versions of a resource.

mod apply;
mod leaves;
mod list_kind;
mod managers;
mod merge;

pub(crate) use apply::{Conflict, apply, duplicates, own_unowned};
pub(crate) use list_kind::ListKind;
pub(crate) use managers::{Manager, Operation, has_owners, record_write};

use serde_json::{Map, Value};

type Body = Map<String, Value>;
