//! The labels of pods and the selector that a real server adds to the spec of a new Job.
//!
//! Counterpart: `generateSelector` in `k8s.io/kubernetes/pkg/registry/batch/job`.

use serde_json::Value;

use super::{Body, metadata_str, object_mut};

/// The labels with the Job's name, in the old and the new form.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
/// The labels with the Job's UID, in the old and the new form.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

/// Makes a Job select its pods by its UID, unless `spec.manualSelector` is true. Keeps labels that
/// the client has set.
pub(super) fn select_by_uid(job: &mut Body) {
    let is_manual = job.get("spec").and_then(|spec| spec.get("manualSelector")) == Some(&Value::Bool(true));
    if is_manual {
        return;
    }
    let name = metadata_str(job, "name").unwrap_or_default().to_owned();
    let uid = metadata_str(job, "uid").unwrap_or_default().to_owned();
    let spec = object_mut(job, "spec");
    let labels = object_mut(object_mut(object_mut(spec, "template"), "metadata"), "labels");
    for (names, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for label in names {
            labels.entry(label).or_insert_with(|| value.as_str().into());
        }
    }
    let selected = object_mut(object_mut(spec, "selector"), "matchLabels");
    selected.entry(UID_LABELS[1]).or_insert_with(|| uid.into());
}
