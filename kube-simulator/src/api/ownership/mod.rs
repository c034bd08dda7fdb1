//! `managedFields`, which records the owners of fields, and server-side apply, which uses these
//! owners.
//!
//! This is a subset of structured-merge-diff. Leaves have owners: scalars, empty lists and maps, and
//! atomic lists and maps. Elements of sets and keyed lists (see [`ListKind`]) have owners, too. The
//! owner of a non-empty map is not recorded, and fields are not converted between the versions of a
//! resource.

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
