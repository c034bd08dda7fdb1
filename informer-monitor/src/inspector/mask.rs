//! [`Mask`]: the fields whose values the inspector never shows.
//!
//! Values are masked before they are shown or searched, so that a search of fields can't find a
//! masked value either. An index over a masked field can find it, unless the index is hidden, too.
//! Two states of an object are compared without masks: the page shows that a masked value has
//! changed, but not the value.

use serde_json::Value;

use super::path::{Path, PathError, Segment, below};

pub(super) const MASKED: &str = "•••••";

/// The annotation in which `kubectl apply` repeats the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields whose values the inspector hides, and the indexes that it does not search.
#[derive(Debug, Clone)]
pub(super) struct Mask {
    /// The fields that the program has passed to [`Mask::add`]. They are hidden in all objects.
    paths: Vec<Path>,
    /// The fields that are hidden in Secrets.
    of_secrets: [Path; 3],
    /// The path of the annotation [`LAST_APPLIED`], which is hidden if it repeats a hidden field.
    last_applied: Path,
    /// The path of `metadata.managedFields`, which is hidden if `paths` is not empty: server-side
    /// apply repeats values of list elements in the names of its fields, such as `k:{"name":"a"}`.
    managed_fields: Path,
    /// The names of the indexes that a search leaves out, because their values are secret.
    indexes: Vec<String>,
}

impl Default for Mask {
    fn default() -> Self {
        let last_applied = Path::of_fields(&["metadata", "annotations", LAST_APPLIED]);
        let of_secrets = [Path::of_fields(&["data"]), Path::of_fields(&["stringData"]), last_applied.clone()];
        let managed_fields = Path::of_fields(&["metadata", "managedFields"]);
        Self { paths: Vec::new(), of_secrets, last_applied, managed_fields, indexes: Vec::new() }
    }
}

/// The paths of the masked fields inside one JSON value. The paths are relative to this value.
#[derive(Debug, Clone, Default)]
pub(super) struct Remaining<'a>(Vec<&'a [Segment]>);

impl Mask {
    /// Masks the field with this path, such as `spec.token`, in all objects.
    pub(super) fn add(&mut self, path: &str) -> Result<(), PathError> {
        self.paths.push(Path::parse(path)?);
        Ok(())
    }

    pub(super) fn add_index(&mut self, name: &str) {
        self.indexes.push(name.to_owned());
    }

    pub(super) fn hides_index(&self, name: &str) -> bool {
        self.indexes.iter().any(|hidden| hidden == name)
    }

    /// Returns the paths of the fields to mask in one object. `objects` contains one or two states
    /// of this object, which get the same mask.
    pub(super) fn of<'a>(&'a self, objects: &[&Value], is_secret: bool) -> Remaining<'a> {
        let mut paths: Vec<_> = self.paths.iter().map(Path::segments).collect();
        if !paths.is_empty() {
            paths.push(self.managed_fields.segments());
        }
        // The JSON of some types has no `kind`.
        if is_secret || objects.iter().any(|object| object["kind"] == "Secret") {
            paths.extend(self.of_secrets.iter().map(Path::segments));
        } else if objects.iter().any(|object| self.repeats_masked_field(object)) {
            paths.push(self.last_applied.segments());
        }
        Remaining(paths)
    }

    /// Returns whether the object's annotation [`LAST_APPLIED`] contains a field that was added
    /// with [`Mask::add`]. Also returns `true` if any field was added and the annotation is not
    /// JSON.
    fn repeats_masked_field(&self, object: &Value) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        self.last_applied.any(object, &|annotation| {
            let applied = annotation.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            // Text that is not JSON can contain the value in any form, so the annotation is masked.
            applied.is_none_or(|applied| self.paths.iter().any(|path| path.any(&applied, &|_| true)))
        })
    }

    pub(super) fn hides_label(&self, label: &str) -> bool {
        let paths = Remaining(self.paths.iter().map(Path::segments).collect());
        let fields = ["metadata", "labels", label];
        fields.iter().try_fold(paths, |paths, field| paths.below(field)).is_none()
    }
}

impl Remaining<'_> {
    /// Returns the paths of the masked fields inside the field with the name `field`. Returns
    /// `None` if this field is masked as a whole.
    pub(super) fn below(&self, field: &str) -> Option<Self> {
        let mut rest = Vec::new();
        for path in &self.0 {
            match below(path, field) {
                Some([]) => return None,
                Some(more) => rest.push(more),
                None => {}
            }
        }
        Some(Self(rest))
    }

    /// Replaces the values of the masked fields inside `value` by [`MASKED`], see [`hide`]. The
    /// names of fields outside of masked lists stay visible, for example the names of the entries
    /// of a Secret.
    pub(super) fn apply(&self, value: &mut Value) {
        if self.0.is_empty() {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match self.below(name) {
                        Some(below) => below.apply(value),
                        None => hide(value),
                    }
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.apply(element)),
            _ => {}
        }
    }
}

/// Replaces all values except `null` by [`MASKED`], and keeps the names of fields. A list becomes
/// one [`MASKED`].
pub(super) fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null => {}
        other => *other = Value::from(MASKED),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(mask: &Mask, mut object: Value) -> Value {
        let paths = mask.of(&[&object.clone()], false);
        paths.apply(&mut object);
        object
    }

    #[test]
    fn secret_shows_the_names_of_its_entries_only() {
        let secret = json!({
            "kind": "Secret", "type": "Opaque",
            "metadata": { "name": "db", "annotations": { LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVy\"}}" } },
            "data": { "password": "aHVudGVy" }, "stringData": { "user": "root" },
        });
        let shown = masked(&Mask::default(), secret);
        assert_eq!(shown["data"], json!({ "password": MASKED }));
        assert_eq!(shown["stringData"], json!({ "user": MASKED }));
        assert_eq!((&shown["type"], &shown["metadata"]["name"]), (&json!("Opaque"), &json!("db")));
        assert!(!shown.to_string().contains("aHVudGVy") && !shown.to_string().contains("root"));
    }

    #[test]
    fn listed_path_is_masked_in_lists_and_below() {
        let mut mask = Mask::default();
        mask.add("spec.containers.env.value").expect("a path");
        mask.add("status.credentials").expect("a path");
        let shown = masked(
            &mask,
            json!({
                "spec": { "containers": [{ "name": "a", "env": [{ "name": "TOKEN", "value": "t0p" }] }] },
                "status": { "credentials": [{ "key": "s3cret" }], "phase": "Running" },
            }),
        );
        let env = &shown["spec"]["containers"][0]["env"][0];
        assert_eq!((&env["name"], &env["value"]), (&json!("TOKEN"), &json!(MASKED)));
        assert_eq!(
            (&shown["status"]["phase"], &shown["status"]["credentials"]),
            (&json!("Running"), &json!(MASKED))
        );
    }

    #[test]
    fn name_with_dots_is_masked_without_brackets() {
        for path in ["data.tls.key", "data[tls.key]", "data.*", "data.tls.*", "*.tls.key"] {
            let mut mask = Mask::default();
            mask.add(path).expect("a path");
            let shown = masked(&mask, json!({ "kind": "ConfigMap", "data": { "tls.key": "t0p" } }));
            assert_eq!(shown["data"]["tls.key"], json!(MASKED), "{path}");
        }
    }

    #[test]
    fn last_applied_is_masked_if_it_repeats_a_masked_field() {
        let mut mask = Mask::default();
        mask.add("spec.token").expect("a path");
        let object = |applied: &str| json!({ "metadata": { "annotations": { LAST_APPLIED: applied } } });
        let shown = |applied| masked(&mask, object(applied))["metadata"]["annotations"][LAST_APPLIED].clone();
        assert_eq!(shown("{\"spec\":{\"token\":\"t0p\"}}"), json!(MASKED));
        assert_eq!(shown("not JSON: t0p"), json!(MASKED));
        assert_eq!(shown("{\"spec\":{}}"), json!("{\"spec\":{}}"));
    }

    #[test]
    fn managed_fields_are_masked_if_any_field_is_masked() {
        let tokens = json!({ "f:tokens": { "k:{\"name\":\"s3cret\"}": {}, "v:\"t0p\"": {} } });
        let object = json!({ "metadata": { "managedFields": [{ "fieldsV1": { "f:spec": tokens } }] } });
        assert_eq!(masked(&Mask::default(), object.clone()), object);
        let mut mask = Mask::default();
        mask.add("spec.tokens.name").expect("a path");
        assert_eq!(masked(&mask, object)["metadata"]["managedFields"], json!(MASKED));
    }

    #[test]
    fn masked_label_is_hidden_from_search() {
        let mut mask = Mask::default();
        assert!(!mask.hides_label("app"));
        mask.add("metadata.labels.owner").expect("a path");
        assert!(mask.hides_label("owner") && !mask.hides_label("app"));
        mask.add("metadata").expect("a path");
        assert!(mask.hides_label("app"));
    }
}
