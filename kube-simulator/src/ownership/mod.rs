//! Who owns which field: `managedFields`, and the server-side apply that builds on them.
//!
//! A documented subset of structured-merge-diff. Ownership is kept of leaves: scalars, empty maps, and lists and maps
//! that are merged as one value; and of the elements of lists with keys. Which lists have keys is in [`ListKind`]. Not
//! kept is who created a map that is not empty; nor are fields converted between the versions of a resource.

mod apply;
mod leaves;
mod list_kind;
mod managers;
mod merge;

pub(crate) use apply::{Conflict, apply, duplicates};
pub(crate) use list_kind::ListKind;
pub(crate) use managers::{Manager, Operation, note_write};

use serde_json::{Map, Value};

/// A JSON object.
type Body = Map<String, Value>;
