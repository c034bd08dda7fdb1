//! Tests of [`rejected`] with damaged objects, which arrive in lists and in `MODIFIED` events.

use informer_core::{RejectedKind, WatchEvent};
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::decode::envelope::MAGIC;
use crate::decode::{Encoding, ExpectedType, ListDecoder, PrunePaths, WatchDecoder};

/// Returns a protobuf message with one field, which contains `content`.
fn field(number: u64, content: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    kube_messages::put_bytes(&mut message, number, content);
    message
}

/// Returns an object or list of this kind in the envelope in which servers send it.
fn envelope(kind: &str, content: &[u8]) -> Vec<u8> {
    let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &types), &field(2, content)].concat()
}

fn expected() -> ExpectedType {
    ExpectedType::of::<ConfigMap>(&())
}

/// Returns the rejected object of a list with this item.
fn listed(encoding: Encoding, paths: PrunePaths, item: &[u8]) -> RejectedObject {
    let body = match encoding {
        Encoding::Json => [&br#"{"items":["#[..], item, b"]}"].concat(),
        Encoding::Protobuf => envelope("ConfigMapList", &field(2, item)),
    };
    let decoder = ListDecoder::<ConfigMap>::new(paths).encoding(encoding);
    let mut decoder = decoder.expecting(expected());
    let mut items = decoder.push(&body).expect("a list");
    items.extend(decoder.finish().expect("a complete list").0);
    items.pop().expect("one item").expect_err("a damaged item")
}

/// Returns the rejected object of a `MODIFIED` event with this object.
fn watched(encoding: Encoding, paths: PrunePaths, object: &[u8]) -> RejectedObject {
    let body = match encoding {
        Encoding::Json => [&br#"{"type":"MODIFIED","object":"#[..], object, b"}\n"].concat(),
        Encoding::Protobuf => {
            let extension = field(1, &envelope("ConfigMap", object));
            let event = [field(1, b"MODIFIED"), field(2, &extension)].concat();
            let length = u32::try_from(event.len()).expect("a short event");
            [length.to_be_bytes().to_vec(), event].concat()
        }
    };
    let decoder = WatchDecoder::<ConfigMap>::new(paths).encoding(encoding);
    let mut events = decoder.expecting(expected()).push(&body).expect("a watch");
    match events.pop() {
        Some(WatchEvent::RejectedObject { kind: RejectedKind::Changed, object }) => object,
        other => panic!("{other:?}"),
    }
}

/// Returns the key and the version of an object that lists and watches reject.
fn identity(encoding: Encoding, object: &[u8]) -> (Option<ObjectKey>, ResourceVersion) {
    pruned_identity(encoding, &PrunePaths::none(), object)
}

/// Like [`identity`], but with pruned fields.
fn pruned_identity(
    encoding: Encoding,
    paths: &PrunePaths,
    object: &[u8],
) -> (Option<ObjectKey>, ResourceVersion) {
    let rejected = listed(encoding, paths.clone(), object);
    assert_eq!(rejected, watched(encoding, paths.clone(), object));
    (rejected.key, rejected.resource_version)
}

#[test]
fn i9_object_with_a_damaged_namespace_has_no_key() {
    let json_members = [
        &b"\"namespace\":\"sh\xffp\""[..],
        br#""namespace":"\ud800""#,
        b"\"names\xffpace\":\"shop\"",
        br#""names\ud800pace":"shop""#,
    ];
    for member in json_members {
        let object = [&br#"{"metadata":{"name":"a","#[..], member, b"}}"].concat();
        for paths in [PrunePaths::none(), PrunePaths::identity_only()] {
            let (key, _) = pruned_identity(Encoding::Json, &paths, &object);
            assert_eq!(key, None, "{} with {paths:?}", member.escape_ascii());
        }
    }
    let protobuf_members = [
        field(3, b"sh\xffp"),
        // A field that ends within its number, and a number instead of a text.
        vec![0xff],
        vec![3 << 3, 4],
        // Part of a damaged name, followed by the namespace.
        [field(3, b""), field(3, b"shop")].concat(),
    ];
    for member in protobuf_members {
        let object = field(1, &[field(1, b"a"), member].concat());
        assert_eq!(identity(Encoding::Protobuf, &object).0, None, "{}", object.escape_ascii());
    }
}

#[test]
fn i10_damage_outside_of_the_identity_keeps_the_key() {
    let metadata = [field(1, b"a"), field(3, b"shop"), field(6, b"7")].concat();
    let json = r#""metadata":{"name":"a","namespace":"shop","resourceVersion":"7""#;
    let objects = [
        (Encoding::Json, format!(r#"{{"kind":"\ud800",{json}}}}}"#).into_bytes()),
        (Encoding::Json, format!(r#"{{{json},"labels":{{"\ud800":"\ud800"}}}}}}"#).into_bytes()),
        (Encoding::Protobuf, [field(1, &metadata), vec![0xff]].concat()),
        (Encoding::Protobuf, field(1, &[metadata, field(11, b"\xff")].concat())),
    ];
    for (encoding, object) in objects {
        let expected = (Some(ObjectKey::namespaced("shop", "a")), ResourceVersion::from("7"));
        assert_eq!(identity(encoding, &object), expected, "{}", object.escape_ascii());
    }
}

#[test]
fn i9_damaged_resource_version_is_left_out() {
    let metadata = [field(1, b"a"), field(6, b"7\xff")].concat();
    let objects = [
        (Encoding::Json, b"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\xff\"}}".to_vec()),
        (Encoding::Protobuf, field(1, &metadata)),
    ];
    for (encoding, object) in objects {
        let expected = (Some(ObjectKey::cluster_scoped("a")), ResourceVersion::empty());
        assert_eq!(identity(encoding, &object), expected);
    }
}
