//! [`Skipped`]: the fields that a decoder skips: the pruned fields, and fields that the Rust type
//! lacks.
//!
//! The decoder learns which fields the type lacks from a sample of the objects. A type with few
//! fields is then decoded faster, and its objects take less memory if they are stored as JSON. A
//! tape is an object as a list of tokens.

use super::prune_paths::{Level, PrunePaths};
use super::tape::Tape;

/// The fields that are not read from the objects of one response.
pub(super) struct Skipped {
    paths: PrunePaths,
    objects: u64,
}

impl Skipped {
    pub(super) fn new(paths: PrunePaths) -> Self {
        Self { paths, objects: 0 }
    }

    pub(super) fn change(&mut self, change: impl FnOnce(PrunePaths) -> PrunePaths) {
        self.paths = change(std::mem::take(&mut self.paths));
    }

    pub(super) fn root(&self) -> &Level {
        self.paths.root()
    }

    /// Counts an object, and returns whether it belongs to the sample: the objects 1, 2, 4, 8 and
    /// so on.
    pub(super) fn count_object(&mut self) -> bool {
        self.objects += 1;
        self.objects.is_power_of_two()
    }

    /// Makes the decoder skip fields that the Rust type lacks, in all later objects. `ignored` has
    /// the indexes of these fields' values on `tape`, the tape of a sample object.
    pub(super) fn learn(&mut self, tape: &Tape<'_>, mut ignored: &[usize]) {
        learn_inside(&mut self.paths, tape, 0, &mut Vec::new(), &mut ignored);
    }
}

/// Adds fields that the Rust type lacks to `paths`: the fields of one object, and the fields of
/// objects nested in it, but not in arrays.
///
/// - `object` is the index of the object on the tape, and `names` is the path of the object.
/// - `ignored` has the indexes of the values without a field in the Rust type, in ascending order.
///   The function removes the indexes of the values in `object`.
fn learn_inside<'t>(
    paths: &mut PrunePaths,
    tape: &'t Tape<'_>,
    object: usize,
    names: &mut Vec<&'t str>,
    ignored: &mut &[usize],
) {
    for (name, value) in tape.members(object) {
        let end = tape.index_after(value);
        let Some(next) = ignored.first().copied() else { return };
        if next >= end {
            continue;
        }
        names.push(name);
        if next == value {
            paths.insert_unless_needed(names);
        } else {
            learn_inside(paths, tape, value, names, ignored);
        }
        names.pop();
        // The remaining indexes before `end` are `value` itself, or in arrays.
        *ignored = &ignored[ignored.partition_point(|index| *index < end)..];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use informer_core::{Cached, OwnedObject, Storage};
    use k8s_openapi::api::core::v1::Pod;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::Deserialize;
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;
    use crate::decode::form::{Arrived, Form};
    use crate::decode::{Decode, ExpectedType, json};

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1",
        "metadata":{"name":"web","labels":{"app":"web"}},
        "spec":{"nodeName":"n1","containers":[{"name":"a","image":"b"}],"priority":7},
        "status":{"phase":"Running"}} "#;

    #[derive(Deserialize)]
    struct View {
        metadata: ObjectMeta,
        spec: ViewSpec,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ViewSpec {
        node_name: String,
        containers: Vec<ViewContainer>,
    }

    #[derive(Deserialize)]
    struct ViewContainer {
        image: String,
    }

    #[derive(Deserialize)]
    struct Flat {
        metadata: ObjectMeta,
        #[serde(flatten)]
        others: BTreeMap<String, Value>,
    }

    #[derive(Deserialize)]
    struct Route {
        metadata: ObjectMeta,
        target: Target,
    }

    #[derive(Deserialize)]
    #[serde(tag = "kind", content = "of")]
    enum Target {
        Service(Port),
        File(Path),
    }

    #[derive(Deserialize)]
    struct Port {
        port: u16,
    }

    #[derive(Deserialize)]
    struct Path {
        path: Option<String>,
    }

    fn form<K: DeserializeOwned + Send + Sync + 'static>(storage: Storage) -> Form {
        Form::Decoded(Decode::of::<K>()).with_storage(storage, &ExpectedType::of::<Pod>(&()))
    }

    /// Reads the JSON `POD` three times, and returns the last object and the JSON of its tape.
    fn read<K: DeserializeOwned + Send + Sync + 'static>(storage: Storage) -> (OwnedObject<K>, String) {
        let (mut skipped, form) = (Skipped::new(PrunePaths::none()), form::<K>(storage));
        let mut last = None;
        for _ in 0..3 {
            let tape = json::read(POD, skipped.root()).expect("JSON").tape;
            let mut read = String::new();
            tape.write_json(0, &mut read);
            let object = form.object(&Arrived { tape, protobuf: None }, &mut skipped).expect("an object");
            last = Some((object.cast(), read));
        }
        last.expect("three objects")
    }

    #[test]
    fn field_that_the_type_lacks_is_skipped_after_the_first_object() {
        let (view, read) = read::<View>(Storage::Decoded);
        assert_eq!((view.spec.node_name.as_str(), view.spec.containers[0].image.as_str()), ("n1", "b"));
        assert_eq!(view.metadata.labels.as_ref().map(BTreeMap::len), Some(1));
        let expected = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"nodeName":"n1","containers":[{"name":"a","image":"b"}]}}"#;
        assert_eq!(read, expected);
    }

    #[test]
    fn learning_from_a_huge_object_takes_linear_time() {
        // If the search for each ignored field began at the start of the object, this test would take
        // minutes.
        let fields: Vec<_> = (0..200_000).map(|field| format!("\"f{field}\":0")).collect();
        let json = format!(
            r#"{{"metadata":{{"name":"web"}},"spec":{{{},"nodeName":"n1","containers":[]}}}} "#,
            fields.join(",")
        );
        let (mut skipped, form) = (Skipped::new(PrunePaths::none()), form::<View>(Storage::Decoded));
        let tape = json::read(&json, skipped.root()).expect("JSON").tape;
        form.object(&Arrived { tape, protobuf: None }, &mut skipped).expect("an object");
        let tape = json::read(&json, skipped.root()).expect("JSON").tape;
        let (_, spec) = tape.members(0).find(|(name, _)| *name == "spec").expect("a spec");
        let left: Vec<_> = tape.members(spec).map(|(name, _)| name).collect();
        assert!(!left.contains(&"f0") && left.contains(&"nodeName"));
    }

    #[test]
    fn encoded_object_has_only_the_fields_of_its_type() {
        let (view, read) = read::<View>(Storage::Encoded);
        assert!(view.is_encoded() && !read.contains("priority") && !read.contains("status"), "{read}");
        let view: Cached<View> = view.into_cached_if_encoded().expect("it is encoded").cast();
        assert_eq!((view.spec.node_name.as_str(), view.spec.containers[0].image.as_str()), ("n1", "b"));
        assert_eq!(view.metadata.labels.as_ref().map(BTreeMap::len), Some(1));
    }

    #[test]
    fn field_of_another_variant_is_not_skipped() {
        let (mut skipped, form) = (Skipped::new(PrunePaths::none()), form::<Route>(Storage::Decoded));
        let mut target = |kind: &str| {
            let json = format!(
                r#"{{"metadata":{{"name":"a"}},"target":{{"kind":"{kind}","of":{{"port":1,"path":"/a"}}}}}} "#
            );
            let tape = json::read(&json, skipped.root()).expect("JSON").tape;
            let object = form.object(&Arrived { tape, protobuf: None }, &mut skipped).expect("an object");
            let route: OwnedObject<Route> = object.cast();
            assert_eq!(route.metadata.name.as_deref(), Some("a"));
            match &route.target {
                Target::Service(service) => service.port.to_string(),
                Target::File(file) => file.path.clone().expect("a path"),
            }
        };
        assert_eq!(
            ["Service", "Service", "File", "File", "Service"].map(&mut target),
            ["1", "1", "/a", "/a", "1"]
        );
    }

    #[test]
    fn flattened_type_has_all_fields_of_each_object() {
        let (flat, _) = read::<Flat>(Storage::Decoded);
        assert_eq!(flat.metadata.name.as_deref(), Some("web"));
        assert_eq!(flat.others.keys().collect::<Vec<_>>(), ["apiVersion", "kind", "spec", "status"]);
        assert_eq!(flat.others["spec"]["priority"], 7);
    }
}
