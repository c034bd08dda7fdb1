//! `managedFields` of simulated pods. In a real pod, `managedFields` make up about half of all
//! bytes.

use serde_json::{Map, Value, json};

/// The lists whose items are identified by keys. Other lists have one owner as a whole.
const KEYED: [(&str, &[&str]); 9] = [
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("env", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("podIPs", &["ip"]),
    ("ports", &["containerPort", "protocol"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

pub(super) fn entry(manager: &str, subresource: Option<&str>, time: &str, fields: &Value) -> Value {
    let mut entry = json!({
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    });
    if let Some(subresource) = subresource {
        entry["subresource"] = subresource.into();
    }
    entry
}

/// Returns the set of all fields of a value, in the format of `FieldsV1`.
pub(super) fn of(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (format!("f:{name}"), of_field(name, field)))
            .collect::<Map<_, _>>()
            .into(),
        _ => json!({}),
    }
}

fn of_field(name: &str, field: &Value) -> Value {
    let keyed = KEYED.iter().find(|(list, _)| *list == name);
    match (field, keyed) {
        (Value::Array(items), Some((_, keys))) => {
            let mut set = Map::from_iter([(".".to_owned(), json!({}))]);
            set.extend(items.iter().map(|item| (key_of(item, keys), of_item(item))));
            Value::Object(set)
        }
        _ => of(field),
    }
}

fn of_item(item: &Value) -> Value {
    let mut set = of(item);
    set["."] = json!({});
    set
}

fn key_of(item: &Value, keys: &[&str]) -> String {
    let key: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect();
    format!("k:{}", Value::Object(key))
}
