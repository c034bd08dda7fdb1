//! Tests of the stored forms: encoded objects equal decoded ones, and undecodable ones are rejected.

use informer_core::{Cached, RejectedObject};
use k8s_openapi::api::core::v1::Pod;
use kube_simulator::Simulator;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::decode::{Decode, Encoding, ListDecoder};

fn pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"app": "web", "tier": "frontend"},
            "annotations": {"note": "a \"quoted\" text\n"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": true},
            ],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {
            "nodeName": "node-1",
            "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "main",
                "image": "nginx:1.29",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "env": [{"name": "A", "value": "1"}],
                "resources": {"requests": {"cpu": "100m"}},
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 10},
            }],
            "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}],
            "tolerations": [{"key": "a", "operator": "Exists"}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.7", "startTime": "2026-11-24T10:00:00Z"},
    })
}

/// Returns the body of a list with one pod in this encoding, as the simulator writes it.
fn body(encoding: Encoding) -> Vec<u8> {
    let accept = match encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf => crate::decode::PROTOBUF,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let simulator = Simulator::builder().built_in_kinds().start_in_process();
        simulator.create(&pod()).expect("a new pod");
        let request = http::Request::get("/api/v1/pods").header("accept", accept);
        let request = request.body(kube::client::Body::empty()).expect("a request");
        let response = simulator.client().expect("a client").send(request).await.expect("a response");
        response.into_body().collect_bytes().await.expect("a body").to_vec()
    })
}

fn expected() -> ExpectedType {
    ExpectedType::of::<Pod>(&())
}

/// Decodes the body of a list with one pod, and returns the pod in the given form.
fn listed(
    body: &[u8],
    encoding: Encoding,
    form: Form,
    paths: &PrunePaths,
) -> Result<OwnedObject<Pod>, RejectedObject> {
    let mut decoder = ListDecoder::<Pod>::with(form, paths.clone()).encoding(encoding);
    let mut items = decoder.push(body).expect("a list");
    items.extend(decoder.finish().expect("a complete list").0);
    items.pop().expect("one item")
}

fn encoded() -> Form {
    Form::Decoded(Decode::of::<Pod>()).with_storage(Storage::Encoded, &expected())
}

#[test]
fn encoded_object_equals_the_decoded_one() {
    let prune = |path: &str| PrunePaths::default().with_path(path).expect("a path");
    let bodies = [Encoding::Json, Encoding::Protobuf].map(|encoding| (encoding, body(encoding)));
    for paths in [
        PrunePaths::none(),
        PrunePaths::default(),
        prune("metadata.annotations.note"),
        prune("spec.volumes"),
        prune("spec.containers.image"),
        prune("status"),
    ] {
        let decoded = || Form::Decoded(Decode::of::<Pod>());
        let [json, protobuf] = &bodies;
        let [json, protobuf] = [json, protobuf]
            .map(|(encoding, body)| listed(body, *encoding, decoded(), &paths).expect("a pod"));
        // The simulator's timestamps and versions of the two bodies differ.
        assert_eq!((&json.spec, &json.status), (&protobuf.spec, &protobuf.status), "{paths:?}");
        // JSON has empty maps, and protobuf does not.
        let annotations = [&json, &protobuf].map(|pod| pod.metadata.annotations.clone().unwrap_or_default());
        assert_eq!(annotations[0], annotations[1], "{paths:?}");
        for (encoding, body) in &bodies {
            let encoding = *encoding;
            let plain = listed(body, encoding, decoded(), &paths).expect("a pod");
            let object = listed(body, encoding, encoded(), &paths).expect("a pod");
            assert!(object.is_encoded(), "{encoding:?}");
            let object: Cached<Pod> = object.into_cached_if_encoded().expect("it is encoded").cast();
            assert_eq!(object.metadata().into_owned(), plain.metadata, "{encoding:?} {paths:?}");
            assert_eq!(*object, *plain, "{encoding:?} {paths:?}");
            assert_eq!(object.key().as_str(), "shop/web");
            assert_eq!(object.resource_version(), &plain.metadata.resource_version.as_deref().into());
            assert_eq!(object.uid(), &plain.metadata.uid.as_deref().into());
        }
    }
}

#[test]
fn i10_undecodable_object_is_rejected_before_it_is_encoded() {
    let broken = br#"{"kind": "PodList", "apiVersion": "v1", "items": [
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": "many"}}
    ]}"#;
    let rejected =
        listed(broken, Encoding::Json, encoded(), &PrunePaths::none()).expect_err("a rejected object");
    assert_eq!(rejected.key, Some(ObjectKey::namespaced("shop", "web")));
    assert_eq!(rejected.error, "unexpected string at spec.containers");
    let nameless = br#"{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {}}]}"#;
    let rejected =
        listed(nameless, Encoding::Json, encoded(), &PrunePaths::none()).expect_err("a rejected object");
    assert_eq!(rejected.error, "a Pod has no name");
}

/// Returns the protobuf message of the pod that [`pod`] returns as JSON.
fn message() -> Vec<u8> {
    let body = body(Encoding::Protobuf);
    let list = crate::decode::envelope::Unknown::read(&body).expect("an envelope").raw;
    let mut fields = Fields(list);
    loop {
        if let (2, Content::Bytes(item)) = fields.next().expect("a field").expect("an item") {
            return item.to_vec();
        }
    }
}

#[test]
fn i10_damaged_message_is_rejected_or_decodes() {
    let message = message();
    let of_pods = Messages::all().of_kind("v1", "Pod").expect("the message of pods");
    proptest!(|(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6))| {
        let mut damaged = message.clone();
        for (index, byte) in changes {
            let len = damaged.len();
            damaged[index.index(len)] = byte;
        }
        let tape = protobuf::read(of_pods, &damaged, &NOTHING_PRUNED);
        prop_assert!(tape.problem().is_some() || (Decode::of::<Pod>().tape)(&tape, None).is_ok());
        let problem = protobuf::check(of_pods, &damaged).err();
        prop_assert_eq!(problem.as_deref(), tape.problem());
        let form = Form::Decoded(Decode::of::<Pod>());
        let paths = PrunePaths::default();
        let direct = form.direct(of_pods, &damaged, paths.root());
        prop_assert!(direct.is_none() || protobuf::read(of_pods, &damaged, paths.root()).problem().is_none());
    });
}

#[test]
fn i10_damaged_nested_value_is_rejected() {
    let of_pods = Messages::all().of_kind("v1", "Pod").expect("the message of pods");
    let choice = Messages::all().find("apiextensions.v1.JSONSchemaPropsOrBool").expect("a choice");
    let form = Form::Decoded(Decode::of::<Pod>());
    // The field numbers of `metadata.creationTimestamp`, `metadata.managedFields[0].fieldsV1`,
    // `spec.overhead[""]` and `spec.containers[0].livenessProbe.httpGet.port`.
    let fields = [&[1, 8][..], &[1, 17, 7], &[2, 32, 2], &[2, 2, 10, 1, 2, 2]];
    for damaged in [&[0xff][..], &[8, 1, 0xff], &[10, 1, b'1', 0xff]] {
        for field in fields {
            let pod = field.iter().rfold(damaged.to_vec(), |inner, number| nested(*number, &inner));
            let tape = protobuf::read(of_pods, &pod, &NOTHING_PRUNED);
            assert!(tape.problem().is_some(), "{field:?} {damaged:?}");
            assert_eq!(protobuf::check(of_pods, &pod).err().as_deref(), tape.problem());
            assert!(form.direct(of_pods, &pod, &NOTHING_PRUNED).is_none(), "{field:?} {damaged:?}");
        }
        let tape = protobuf::read(choice, damaged, &NOTHING_PRUNED);
        assert!(tape.problem().is_some(), "{damaged:?}");
    }
}

#[test]
fn i10_choice_with_a_split_list_is_rejected() {
    let choice = Messages::all().find("apiextensions.v1.JSONSchemaPropsOrArray").expect("a choice");
    let field = |number| nested(number, b"");
    for (fields, is_rejected) in [(vec![2, 2], false), (vec![1, 2, 2], false), (vec![2, 1, 2], true)] {
        let bytes: Vec<u8> = fields.iter().copied().flat_map(field).collect();
        assert_eq!(protobuf::check(choice, &bytes).is_err(), is_rejected, "{fields:?}");
    }
}

#[test]
fn kind_with_choices_is_not_stored_as_protobuf() {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    assert!(expected().storable_message().is_some());
    let definition = ExpectedType::of::<CustomResourceDefinition>(&());
    assert!(definition.has_message() && definition.storable_message().is_none());
}

#[test]
fn protobuf_and_json_have_the_same_maximum_depth() {
    let message = Messages::all().find("apiextensions.v1.JSONSchemaProps").expect("the message of schemas");
    let field = |name: &str| message.fields.iter().find(|field| field.name == name).expect(name).number;
    let (list, map) = (field("allOf"), field("properties"));
    for schemas in 62..66 {
        // `{"properties": {"a": {"properties": {"a": … {}}}}}`
        let (mut maps, mut lists) = (Vec::new(), Vec::new());
        for _ in 0..schemas {
            maps = nested(map, &[nested(1, b"a"), nested(2, &maps)].concat());
            lists = nested(list, &lists);
        }
        let of_maps = format!("{}{{}}{}", r#"{"properties":{"a":"#.repeat(schemas), "}}".repeat(schemas));
        let of_lists = format!("{}{{}}{}", r#"{"allOf":["#.repeat(schemas), "]}".repeat(schemas));
        for (bytes, json) in [(maps, of_maps), (lists, of_lists)] {
            let tape = protobuf::read(message, &bytes, &NOTHING_PRUNED);
            let expected = json::read(&json, &NOTHING_PRUNED).expect("JSON").tape;
            assert_eq!(tape.problem(), expected.problem(), "{schemas} schemas");
            assert_eq!(protobuf::check(message, &bytes).err().as_deref(), tape.problem());
        }
    }
}

#[test]
fn inlined_message_is_no_level_of_its_own() {
    let message = Messages::all().find("resource.v1.DeviceClaimConfiguration").expect("the message");
    for lists in 120..130 {
        let value = "[".repeat(lists) + &"]".repeat(lists);
        // The inlined message (field 2) has the field `opaque`, whose field `parameters` is JSON.
        let parameters = nested(2, &nested(1, value.as_bytes()));
        let tape = protobuf::read(message, &nested(2, &nested(1, &parameters)), &NOTHING_PRUNED);
        let json = format!(r#"{{"opaque":{{"parameters":{value}}}}}"#);
        let expected = json::read(&json, &NOTHING_PRUNED).expect("JSON").tape;
        assert_eq!(tape.problem(), expected.problem(), "{lists} lists");
    }
}

/// Returns a message with one field, which contains `content`.
fn nested(number: u64, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    kube_messages::put_bytes(&mut message, number, content);
    message
}

#[test]
fn i10_message_that_its_type_cannot_have_is_rejected() {
    // `status.disruptedPods: {"a": null}`, as Go writes it.
    let pods = nested(2, &[nested(1, b"a"), nested(2, b"")].concat());
    let budget = ("policy/v1", "PodDisruptionBudget", nested(3, &pods), "a time without a value");
    // `data: 1e999`, which is no number of `serde_json`.
    let data = nested(2, &nested(1, b"1e999"));
    let revision = ("apps/v1", "ControllerRevision", data, "invalid JSON in protobuf");
    let no_time = "a required time is missing";
    let conditions = [nested(1, b"Ready"), [nested(1, b"Ready"), nested(4, b"")].concat()];
    let [missing, empty] = conditions.map(|condition| nested(3, &nested(7, &condition)));
    let missing = ("policy/v1", "PodDisruptionBudget", missing, no_time);
    let empty = ("policy/v1", "PodDisruptionBudget", empty, no_time);
    let series = ("events.k8s.io/v1", "Event", nested(3, &[8, 2]), no_time);
    // The source of a volume, whose fields are inlined, is a number.
    let number = [nested(1, b"a"), vec![2 << 3, 1]].concat();
    let malformed = kube_messages::Malformed.to_string();
    let volume = ("v1", "Pod", nested(2, &nested(1, &number)), &*malformed);
    // The time of a condition is a number.
    let number = [nested(1, b"Ready"), vec![4 << 3, 0]].concat();
    let time = ("policy/v1", "PodDisruptionBudget", nested(3, &nested(7, &number)), &*malformed);
    let two_values = nested(2, &nested(1, b"{} {}"));
    let two_values = ("apps/v1", "ControllerRevision", two_values, "invalid JSON in protobuf");
    let cases = [budget, revision, missing, empty, series, volume, time, two_values];
    for (api_version, kind, bytes, problem) in cases {
        let message = Messages::all().of_kind(api_version, kind).expect(kind);
        assert_eq!(protobuf::check(message, &bytes), Err(problem.to_owned()), "{kind}");
    }
}
