//! Structural schemas: what a server makes of a custom resource before it is stored.
//!
//! Fields that the schema does not know are pruned, defaults are filled in, and what is there is checked for its type,
//! required fields, enums and bounds. [`unchecked`] finds what applies and is not looked at: patterns, formats, `oneOf`
//! and its kin, and CEL rules. The
//! interpreter works on the schema's JSON as it is; a general JSON Schema library knows neither pruning nor defaults,
//! and would bring many times the code.

mod check;
mod fill;
mod place;
mod prune;
mod unchecked;

pub(crate) use check::check;
pub(crate) use fill::fill;
pub(crate) use prune::prune;
pub(crate) use unchecked::unchecked;

use serde_json::Value;

/// What all objects have, whatever their schema says.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns the schema of a field, be it named or one of many alike.
pub(crate) fn of_field<'s>(schema: &'s Value, field: &str) -> Option<&'s Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(field));
    named.or_else(|| schema.get("additionalProperties").filter(|of_all| of_all.is_object()))
}

/// Returns whether fields may stay that the schema does not name.
fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true || schema["additionalProperties"] == true
}
