//! Structural schemas: prunes, completes and validates custom resources before they are stored.
//!
//! [`unchecked`] reports most rules that are not checked. The code works on the schema's JSON
//! directly, because general JSON Schema libraries support neither pruning nor defaults and are
//! much larger.

mod check;
mod fill;
mod place;
mod prune;
mod unchecked;
mod undeclared;

pub(crate) use check::check;
pub(crate) use fill::fill;
pub(crate) use prune::prune;
pub(crate) use unchecked::unchecked;
pub(crate) use undeclared::undeclared;

use serde_json::Value;

/// The fields that every object has, even if its schema lacks them.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns the schema of a field: a property of an object or a key of a map.
pub(crate) fn of_field<'s>(schema: &'s Value, field: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(field));
    named.or_else(|| schema.get("additionalProperties").filter(|of_all| of_all.is_object()))
}

fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true
}
