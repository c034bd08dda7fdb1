//! The body of a list, split anywhere: the decoder returns the same items as `serde_json`, and never panics.
#![no_main]

use informer_core::{ListEnd, ListWatchError, RejectedObject};
use informer_fuzz::{has_unique_fields, split};
use informer_reflector::{ListDecoder, PrunePaths};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ListMeta;
use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Some((body, pieces)) = split(input) else { return };
    let whole = decode::<Value>(PrunePaths::none(), &[body]);
    let split = decode::<Value>(PrunePaths::none(), &pieces);
    assert_eq!(format!("{whole:?}"), format!("{split:?}"));
    if let (Some(expected), true) = (expected(body), has_unique_fields(body)) {
        let (items, end) = whole.expect("the body is a list");
        assert_eq!(items.into_iter().collect::<Result<Vec<_>, _>>().as_ref(), Ok(&expected.0));
        assert_eq!(end.resource_version, expected.1.resource_version.as_deref().into());
    }
    let whole = decode::<ConfigMap>(PrunePaths::default(), &[body]);
    let split = decode::<ConfigMap>(PrunePaths::default(), &pieces);
    assert_eq!(format!("{whole:?}"), format!("{split:?}"));
});

type Decoded<K> = Result<(Vec<Result<K, RejectedObject>>, ListEnd), ListWatchError>;

fn decode<K: DeserializeOwned + Clone + Send + Sync + 'static>(
    paths: PrunePaths,
    pieces: &[&[u8]],
) -> Decoded<K> {
    let mut decoder = ListDecoder::new(paths);
    let mut items = Vec::new();
    for piece in pieces {
        items.extend(decoder.push(piece)?.into_iter().map(|item| item.map(|object| K::clone(&object))));
    }
    let (rest, end) = decoder.finish()?;
    items.extend(rest.into_iter().map(|item| item.map(|object| K::clone(&object))));
    Ok((items, end))
}

/// Decodes the body of a list with `serde_json`. Returns `None` for an invalid list, which the
/// decoder may accept or reject.
fn expected(body: &[u8]) -> Option<(Vec<Value>, ListMeta)> {
    let Value::Object(mut list) = serde_json::from_slice(body).ok()? else { return None };
    let is_text = |field: &str| list.get(field).is_none_or(|value| value.is_string() || value.is_null());
    let is_other = ["Table", "Status"].into_iter().any(|kind| list.get("kind") == Some(&kind.into()));
    if !is_text("kind") || !is_text("apiVersion") || is_other {
        return None;
    }
    let metadata = list.remove("metadata").unwrap_or_default();
    let metadata = serde_json::from_value::<Option<ListMeta>>(metadata).ok()?;
    let Value::Array(items) = list.remove("items")? else { return None };
    Some((items, metadata.unwrap_or_default()))
}
