//! `/scale`: the replicas of an object, whatever its kind, as `Scale` of `autoscaling/v1`.

use serde_json::{Value, json};

use super::patch::Patch;
use super::update::{Change, Part, replace};
use super::{Body, Outcome, Writer, object_mut};
use crate::object::Object;
use crate::resource::{ResourceKind, Scale};
use crate::status::{self, FieldError, Refusal};

/// A write to `/scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rescale<'a> {
    /// A whole `Scale`.
    Put(&'a Body),
    Patch(&'a Patch),
}

/// Gives what `/scale` shows of an object.
pub(super) fn get(writer: &Writer<'_>, name: &str) -> Result<Value, Refusal> {
    let found = writer.served.table.get(&writer.key(name));
    let object = found.ok_or_else(|| status::not_found(&writer.served.kind, name))?;
    get_from(&writer.served.kind, &object)
}

/// Gives what `/scale` shows of a version of an object.
pub(super) fn get_from(kind: &ResourceKind, object: &Object) -> Result<Value, Refusal> {
    Ok(show(paths(kind)?, &Value::Object(object.decode())))
}

/// Sets the replicas of an object.
pub(super) fn set(writer: &Writer<'_>, name: &str, change: Rescale<'_>) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let paths = paths(kind)?;
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        let scale = match change {
            Rescale::Put(scale) => scale.clone(),
            Rescale::Patch(patch) => match show(paths, &Value::Object(before.clone())) {
                Value::Object(scale) => patch.apply(kind, scale)?,
                _ => Body::new(),
            },
        };
        let replicas = scale.get("spec").and_then(|spec| spec.get("replicas")).cloned().unwrap_or(0.into());
        if !replicas.is_u64() {
            let why = "must be greater than or equal to 0";
            let error = FieldError::invalid("spec.replicas", &replicas.to_string(), why);
            return Err(status::invalid("autoscaling", "Scale", name, vec![error]));
        }
        let mut after = before.clone();
        set_at(&mut after, &paths.spec_replicas, replicas);
        let version = scale.get("metadata").and_then(|metadata| metadata.get("resourceVersion"));
        if let (Some(version), Some(metadata)) = (version, after.get_mut("metadata")) {
            metadata["resourceVersion"] = version.clone();
        }
        replace(transaction, writer, &old, &before, Change::new(after, Part::Main))
    })
}

/// Writes a label selector as text; what is text already stays as it is.
pub(crate) fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    // A replication controller has plain labels in the place of a selector.
    let labels = if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
        &selector["matchLabels"]
    } else {
        selector
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = labels.as_object().into_iter().flatten();
    let mut parts: Vec<String> = equal.map(|(name, value)| format!("{name}={}", text(value))).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let values: Vec<String> = expression["values"].as_array().into_iter().flatten().map(text).collect();
        let (key, values) = (text(&expression["key"]), values.join(","));
        parts.push(match expression["operator"].as_str().unwrap_or_default() {
            "Exists" => key,
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({values})"),
            _ => format!("{key} in ({values})"),
        });
    }
    parts.join(",")
}

fn paths(kind: &ResourceKind) -> Result<&Scale, Refusal> {
    kind.scale.as_ref().ok_or_else(status::method_not_allowed)
}

fn show(paths: &Scale, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
    let kept: Body =
        kept.into_iter().filter_map(|name| Some((name.to_owned(), metadata.get(name)?.clone()))).collect();
    let number = |path: &str| at(object, path).and_then(Value::as_i64).unwrap_or(0);
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": { "replicas": number(&paths.spec_replicas) },
        "status": { "replicas": number(&paths.status_replicas) },
    });
    let selector = paths.selector.as_deref().and_then(|path| at(object, path)).map(selector_text);
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |inner, step| inner.get(step))
}

fn set_at(object: &mut Body, path: &str, value: Value) {
    match path.trim_start_matches('.').split_once('.') {
        Some((step, rest)) => set_at(object_mut(object, step), rest, value),
        None => {
            object.insert(path.to_owned(), value);
        }
    }
}
