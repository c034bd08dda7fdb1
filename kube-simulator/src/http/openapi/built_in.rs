//! The schemas of built-in kinds, which are derived from protobuf messages.

use kube_messages::Shape;
use serde_json::{Map, Value, json};

use crate::http::encoding::protobuf::{FieldType, fields_of, message_of};
use crate::kinds::ResourceKind;

/// Returns the schemas of a kind's fields, or `None` if the kind has no protobuf message. Adds the
/// schemas of all messages in these fields to `schemas`.
pub(super) fn properties(kind: &ResourceKind, schemas: &mut Map<String, Value>) -> Option<Value> {
    let message = message_of(&kind.api_version(), &kind.kind).filter(|_| kind.is_built_in())?;
    Some(describe_fields(message, schemas))
}

fn describe_fields(message: &str, schemas: &mut Map<String, Value>) -> Value {
    let fields = fields_of(message).into_iter();
    fields.map(|(name, field)| (name.to_owned(), describe(field, schemas))).collect::<Map<_, _>>().into()
}

fn describe(field: FieldType, schemas: &mut Map<String, Value>) -> Value {
    let inner = describe_type(field.name, schemas);
    match field.shape {
        Shape::List => json!({ "type": "array", "items": inner }),
        Shape::Map => json!({ "type": "object", "additionalProperties": inner }),
        Shape::Plain | Shape::Always | Shape::Pointer => inner,
    }
}

fn describe_type(type_name: &str, schemas: &mut Map<String, Value>) -> Value {
    match type_name {
        "s" | "api.resource.Quantity" => json!({ "type": "string" }),
        "y" => json!({ "type": "string", "format": "byte" }),
        "b" => json!({ "type": "boolean" }),
        "i" => json!({ "type": "integer" }),
        "l" => json!({ "type": "integer", "format": "int64" }),
        "d" => json!({ "type": "number" }),
        "meta.v1.Time" | "meta.v1.MicroTime" => json!({ "type": "string", "format": "date-time" }),
        "util.intstr.IntOrString" => {
            json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
        }
        "meta.v1.FieldsV1" | "pkg.runtime.RawExtension" | "apiextensions.v1.JSON" => {
            json!({ "type": "object" })
        }
        message => {
            let name = component(message);
            if !schemas.contains_key(&name) {
                // The name is inserted before the fields are described, so that a message that
                // contains itself does not recurse endlessly.
                schemas.insert(name.clone(), Value::Null);
                let properties = describe_fields(message, schemas);
                schemas.insert(name.clone(), json!({ "type": "object", "properties": properties }));
            }
            json!({ "allOf": [{ "$ref": format!("#/components/schemas/{name}") }] })
        }
    }
}

/// Returns the schema name of a protobuf message. The name is the same on a real server, except for
/// the messages of custom resource definitions and API services.
fn component(message: &str) -> String {
    match message.strip_prefix("meta.") {
        Some(meta) => format!("io.k8s.apimachinery.pkg.apis.meta.{meta}"),
        None => format!("io.k8s.api.{message}"),
    }
}
