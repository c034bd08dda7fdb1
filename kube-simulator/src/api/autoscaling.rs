//! Converts horizontal pod autoscalers between `autoscaling/v1` and `autoscaling/v2`. They are
//! stored in v2.
//!
//! A v1 object has a field for only one metric, the CPU utilization. Annotations of the v1 object
//! contain, as JSON, all other metrics and the other fields that only v2 has.
//!
//! Counterpart: `pkg/apis/autoscaling/v1/conversion.go` of Kubernetes.

use serde_json::{Map, Value, json};

use crate::api::writes::{Body, metadata_mut, object_mut};
use crate::kinds::{Facts, ResourceKind};

const KIND: &str = "HorizontalPodAutoscaler";

/// The fields that exist only in v2. Each tuple contains the parent of the field, the field, and
/// the annotation that replaces it in v1.
const ANNOTATIONS: [(&str, &str, &str); 4] = [
    ("spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"),
    ("spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"),
    ("status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"),
    ("status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"),
];

/// A type of metric, such as `resource`, with its fields. Each pair maps a name in a v1 annotation
/// to a path in v2, for example `*Value` to `*.value`; [`METRICS`] explains `*`.
type MetricFields = (&'static str, &'static [(&'static str, &'static str)]);

/// The field names of metrics in v2, and in the v1 annotations that replace the fields
/// `spec.metrics` and `status.currentMetrics`. In names and paths, `*` stands for `target` in the
/// spec, and for `current` in the status.
const METRICS: [MetricFields; 5] = [
    (
        "resource",
        &[
            ("name", "name"),
            ("*AverageUtilization", "*.averageUtilization"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
    (
        "containerResource",
        &[
            ("name", "name"),
            ("container", "container"),
            ("*AverageUtilization", "*.averageUtilization"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
    (
        "pods",
        &[
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
    (
        "object",
        &[
            ("target", "describedObject"),
            ("metricName", "metric.name"),
            ("selector", "metric.selector"),
            ("*Value", "*.value"),
            ("averageValue", "*.averageValue"),
        ],
    ),
    (
        "external",
        &[
            ("metricName", "metric.name"),
            ("metricSelector", "metric.selector"),
            ("*Value", "*.value"),
            ("*AverageValue", "*.averageValue"),
        ],
    ),
];

/// Returns the v1 kind of horizontal pod autoscalers, if `kind` is their v2 kind.
pub(crate) fn v1_kind(kind: &ResourceKind) -> Option<ResourceKind> {
    let is_v2 = kind.group == "autoscaling" && kind.kind == KIND && kind.version == "v2";
    is_v2.then(|| {
        let facts = Facts::find(&kind.group, "v1", KIND);
        ResourceKind { version: "v1".to_owned(), facts, ..kind.clone() }
    })
}

pub(crate) fn is_converted(kind: &ResourceKind) -> bool {
    kind.group == "autoscaling" && kind.kind == KIND && kind.version == "v1"
}

pub(crate) fn to_v1(body: &mut Body) {
    let metrics = remove_field(body, "spec", "metrics");
    let (cpu, others): (Vec<_>, Vec<_>) =
        list(metrics).into_iter().partition(|metric| utilization(metric, "target").is_some());
    let current = list(remove_field(body, "status", "currentMetrics"));
    let (behavior, conditions) =
        (remove_field(body, "spec", "behavior"), remove_field(body, "status", "conditions"));
    if let Some(target) = cpu.first().and_then(|metric| utilization(metric, "target")) {
        object_mut(body, "spec").insert("targetCPUUtilizationPercentage".to_owned(), target);
    }
    if let Some(now) = current.iter().find_map(|metric| utilization(metric, "current")) {
        object_mut(body, "status").insert("currentCPUUtilizationPercentage".to_owned(), now);
    }
    let others: Vec<_> = others.iter().map(|metric| metric_to_v1(metric, "target")).collect();
    let current: Vec<_> = current.iter().map(|metric| metric_to_v1(metric, "current")).collect();
    let values = [
        (!others.is_empty()).then(|| others.into()),
        // The names of these fields begin with a capital letter in the annotation.
        behavior.map(|behavior| change_first_letters(behavior, char::to_ascii_uppercase)),
        conditions.filter(|conditions| conditions.as_array().is_some_and(|list| !list.is_empty())),
        (!current.is_empty()).then(|| current.into()),
    ];
    for ((_, _, annotation), value) in ANNOTATIONS.iter().zip(values) {
        if let Some(value) = value {
            let annotations = object_mut(metadata_mut(body), "annotations");
            annotations.insert((*annotation).to_owned(), value.to_string().into());
        }
    }
}

pub(crate) fn to_v2(body: &mut Body) {
    for (part, field, annotation) in ANNOTATIONS {
        let annotations = body.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        let text = annotations.and_then(Value::as_object_mut).and_then(|all| all.remove(annotation));
        let value: Option<Value> = text.and_then(|text| serde_json::from_str(text.as_str()?).ok());
        let Some(value) = value else { continue };
        let value = match field {
            "metrics" => metrics_to_v2(value, "target"),
            "currentMetrics" => metrics_to_v2(value, "current"),
            "behavior" => change_first_letters(value, char::to_ascii_lowercase),
            _ => value,
        };
        object_mut(body, part).insert(field.to_owned(), value);
    }
    // Usually, the annotation with `status.currentMetrics` contains this value, too, so it is
    // removed and not converted. Without the annotation, the value is lost.
    _ = remove_field(body, "status", "currentCPUUtilizationPercentage");
    if let Some(target) = remove_field(body, "spec", "targetCPUUtilizationPercentage") {
        let target = json!({ "type": "Utilization", "averageUtilization": target });
        let cpu = json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } });
        let metrics = object_mut(body, "spec").entry("metrics").or_insert_with(|| json!([]));
        metrics.as_array_mut().into_iter().for_each(|metrics| metrics.push(cpu.clone()));
    }
}

/// Changes the first letter of each field name, also in nested objects. For example, `scaleUp`
/// becomes `ScaleUp`. Drops null fields.
fn change_first_letters(value: Value, letter: fn(&char) -> char) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(|value| change_first_letters(value, letter)).collect(),
        Value::Object(fields) => {
            let field = |(name, value): (String, Value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|first| letter(&first));
                (first.into_iter().chain(letters).collect::<String>(), change_first_letters(value, letter))
            };
            fields.into_iter().filter(|(_, value)| !value.is_null()).map(field).collect()
        }
        value => value,
    }
}

/// Removes a field from a part of an object, such as `spec`. A null field counts as absent.
fn remove_field(body: &mut Body, part: &str, field: &str) -> Option<Value> {
    body.get_mut(part)?.as_object_mut()?.remove(field).filter(|value| !value.is_null())
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

fn utilization(metric: &Value, part: &str) -> Option<Value> {
    let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
    resource.get(part)?.get("averageUtilization").filter(|value| !value.is_null()).cloned()
}

/// Converts a metric. `part` is `target` for a metric of the spec, and `current` for one of the
/// status.
fn metric_to_v1(metric: &Value, part: &str) -> Value {
    let mut converted = json!({ "type": metric["type"] });
    for (field, paths) in METRICS {
        let Some(source) = metric.get(field) else { continue };
        let mut fields = Map::new();
        for (name, path) in paths {
            let path = path.replace('*', part);
            let value = path.split('.').try_fold(source, |value, key| value.get(key));
            fields.extend(value.map(|value| (name.replace('*', part), value.clone())));
        }
        converted[field] = fields.into();
    }
    converted
}

/// Converts the metrics of an annotation. `part` is `target` for the metrics of the spec, and
/// `current` for those of the status.
fn metrics_to_v2(metrics: Value, part: &str) -> Value {
    list(Some(metrics)).iter().map(|metric| metric_to_v2(metric, part)).collect()
}

fn metric_to_v2(metric: &Value, part: &str) -> Value {
    let mut converted = json!({ "type": metric["type"] });
    for (field, paths) in METRICS {
        let Some(source) = metric.get(field) else { continue };
        for (name, path) in paths {
            let Some(value) = source.get(name.replace('*', part)) else { continue };
            let path = path.replace('*', part);
            let place = path.split('.').fold(&mut converted[field], |place, key| &mut place[key]);
            *place = value.clone();
        }
        if let Some(target) = converted[field].get_mut("target").and_then(Value::as_object_mut) {
            let types =
                [("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value")];
            let found = types.into_iter().find(|(field, _)| target.contains_key(*field));
            target.extend(found.map(|(_, name)| ("type".to_owned(), name.into())));
        }
    }
    converted
}
