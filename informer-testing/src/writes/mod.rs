//! What the server makes of a write: the rules between a client's body and a stored version.

mod create;
mod delete;
mod identity;
mod patch;
mod stamp;
mod update;

pub(crate) use create::{Guard, create};
pub(crate) use delete::{DeleteOptions, delete};
pub(crate) use patch::{Patch, patch};
pub(crate) use stamp::{Stamp, uuid};
pub(crate) use update::{Part, update, update_verbatim};

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::object::Object;

/// A JSON object on its way into the store.
pub(crate) type Body = Map<String, Value>;

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The object as it is stored now (or would be, in a dry run).
    Stored(Arc<Object>),
    /// The object's last version; it is gone.
    Removed(Arc<Object>),
}

impl Outcome {
    pub(crate) fn into_object(self) -> Arc<Object> {
        match self {
            Self::Stored(object) | Self::Removed(object) => object,
        }
    }
}

/// Borrows `metadata`, making it an empty object if it is none.
fn metadata_mut(body: &mut Body) -> &mut Body {
    let metadata = body.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(metadata) => metadata,
        _ => unreachable!("it was made an object just above"),
    }
}

/// Reads a string in `metadata`; an empty one counts as absent, as it does in Go.
fn metadata_str<'a>(body: &'a Body, field: &str) -> Option<&'a str> {
    body.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

fn has_finalizers(body: &Body) -> bool {
    let finalizers = body.get("metadata").and_then(|metadata| metadata.get("finalizers"));
    finalizers.and_then(Value::as_array).is_some_and(|finalizers| !finalizers.is_empty())
}
