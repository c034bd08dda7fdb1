//! `/scale`: the replicas of an object, as a `Scale` of `autoscaling/v1`.

use serde_json::{Value, json};

use super::apply;
use super::identity::{check_name, check_namespace};
use super::patch::Patch;
use super::update::{Change, Part, check_uid, replace};
use super::{Body, Outcome, Writer, metadata_mut, metadata_str, object_mut};
use crate::api::ownership::{self, Conflict, Manager, Operation};
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::{ResourceKind, Scale};
use crate::storage::Object;

/// A write to `/scale`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rescale<'a> {
    /// A whole `Scale`, which replaces the current one (PUT).
    Put(&'a Body),
    Patch(&'a Patch),
}

pub(super) fn get(writer: &Writer<'_>, name: &str) -> Result<Value, Refusal> {
    let found = writer.served.table.get(&writer.key(name));
    let object = found.ok_or_else(|| status::not_found(&writer.served.kind, name))?;
    let (kind, replicas) = (&*writer.served.kind, &paths(&writer.served.kind)?.spec_replicas);
    // In built-in kinds, the number of replicas has a default.
    if !kind.is_built_in() && at(&Value::Object(object.decode()), replicas).is_none() {
        let path = format!(".{replicas}");
        return Err(status::internal_error(&format!("the spec replicas field {path:?} does not exist")));
    }
    get_from(kind, &object)
}

pub(super) fn get_from(kind: &ResourceKind, object: &Object) -> Result<Value, Refusal> {
    Ok(show(paths(kind)?, &Value::Object(object.decode())))
}

pub(super) fn set(writer: &Writer<'_>, name: &str, change: Rescale<'_>) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let paths = paths(kind)?;
    if let Rescale::Patch(Patch::Apply(configuration)) = change {
        return apply(writer, name, configuration);
    }
    if let Rescale::Put(scale) = change {
        check_namespace(writer.namespace, scale)?;
        check_name(scale, name)?;
    }
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        let scale = match change {
            Rescale::Put(scale) => {
                check_uid(kind, &old, metadata_str(scale, "uid"))?;
                scale.clone()
            }
            Rescale::Patch(patch) => {
                let scale = patch.apply(kind, show(paths, &Value::Object(before.clone())))?;
                let plural = format!("{}/scale", kind.plural);
                let subresource = ResourceKind { plural, ..kind.clone() };
                check_uid(&subresource, &old, metadata_str(&scale, "uid"))?;
                scale
            }
        };
        let replicas = scale.get("spec").and_then(|spec| spec.get("replicas"));
        // In Go, an absent or null number is 0.
        let replicas = replicas.filter(|replicas| !replicas.is_null()).cloned().unwrap_or(0.into());
        check_replicas(name, &replicas)?;
        let mut after = before.clone();
        set_at(&mut after, &paths.spec_replicas, replicas);
        take_version(&scale, &mut after);
        replace(transaction, writer, &old, &before, Change::new(after, Part::Scale))
    })
}

/// Applies a `Scale` with server-side apply. If the `Scale` has replicas, the manager then owns the
/// object's field for replicas, possibly together with other managers.
fn apply(writer: &Writer<'_>, name: &str, configuration: &Body) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let path = &paths(kind)?.spec_replicas;
    let scales = ResourceKind::namespaced("autoscaling", "v1", "Scale", &kind.plural);
    let scale = apply::check(&scales, writer, name, configuration.clone(), Part::Scale)?;
    let mut applied = Body::new();
    if let Some(replicas) = scale.get("spec").and_then(|spec| spec.get("replicas")) {
        check_replicas(name, replicas)?;
        set_at(&mut applied, path, replicas.clone());
    }
    let now = writer.api.now();
    let manager = Manager { operation: Operation::Apply, ..writer.manager(Part::Scale, &now) };
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        let before = old.decode();
        let mut owned = Body::new();
        if let Some(replicas) = at(&Value::Object(before.clone()), path) {
            set_at(&mut owned, path, replicas.clone());
        }
        let mut with_owner = before.clone();
        let earlier = Manager { name: apply::BEFORE_FIRST_APPLY, operation: Operation::Update, ..manager };
        ownership::own_unowned(kind, &mut with_owner, &owned, &earlier);
        let applied = ownership::apply(kind, &with_owner, &applied, &manager, writer.options.force);
        let mut after =
            applied.map_err(|conflicts| apply::conflict(kind, name, &of_scale(kind, conflicts)))?;
        if at(&Value::Object(after.clone()), path).is_none() {
            // In Go, an absent number is 0.
            set_at(&mut after, path, 0.into());
        }
        take_version(&scale, &mut after);
        replace(transaction, writer, &old, &before, Change { after, part: Part::Scale, owners_settled: true })
    })
}

/// Rewrites conflicts about the object's replicas as conflicts about the `Scale`. Each conflict
/// then names the field `.spec.replicas`. If a conflict contains the object's API version,
/// `autoscaling/v1` replaces this version.
fn of_scale(kind: &ResourceKind, mut conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let version = format!(" using {}", kind.api_version());
    for conflict in &mut conflicts {
        conflict.field = ".spec.replicas".to_owned();
        if let Some(manager) = conflict.manager.strip_suffix(&version) {
            conflict.manager = format!("{manager} using autoscaling/v1");
        }
    }
    conflicts
}

fn check_replicas(name: &str, replicas: &Value) -> Result<(), Refusal> {
    if replicas.is_u64() {
        return Ok(());
    }
    let why = "must be greater than or equal to 0";
    let error = FieldError::invalid("spec.replicas", &replicas.to_string(), why);
    Err(status::invalid("autoscaling", "Scale", name, vec![error]))
}

/// Copies the resource version of a `Scale` to the object, as a precondition.
fn take_version(scale: &Body, object: &mut Body) {
    if let Some(version) = scale.get("metadata").and_then(|metadata| metadata.get("resourceVersion")) {
        metadata_mut(object).insert("resourceVersion".to_owned(), version.clone());
    }
}

/// Converts a label selector to its string form, in which keys and values are sorted. A string is
/// returned unchanged.
pub(crate) fn selector_text(selector: &Value) -> String {
    if let Some(text) = selector.as_str() {
        return text.to_owned();
    }
    // A replication controller has a map of labels instead of a selector.
    let labels = if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
        &selector["matchLabels"]
    } else {
        selector
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let equal = labels.as_object().into_iter().flatten();
    let equal = equal.map(|(name, value)| (name.clone(), format!("{name}={}", text(value))));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().map(|expression| {
        let values = expression["values"].as_array().into_iter().flatten().map(text);
        let mut values: Vec<String> = values.collect();
        values.sort_unstable();
        let (key, values) = (text(&expression["key"]), values.join(","));
        let part = match expression["operator"].as_str().unwrap_or_default() {
            "Exists" => key.clone(),
            "DoesNotExist" => format!("!{key}"),
            "NotIn" => format!("{key} notin ({values})"),
            _ => format!("{key} in ({values})"),
        };
        (key, part)
    });
    let mut parts: Vec<(String, String)> = equal.chain(expressions).collect();
    parts.sort_by(|(left, _), (right, _)| left.cmp(right));
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
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
