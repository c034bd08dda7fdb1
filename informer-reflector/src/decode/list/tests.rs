//! Tests of [`ListDecoder`] with valid and invalid bodies, split at any position.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{DynamicObject, PartialObjectMeta};
use proptest::prelude::*;

use super::*;

/// The items and the end that a decoder returned, in a form that can be compared.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// The names of the items; for a rejected item, the rejection.
    items: Vec<Result<String, RejectedObject>>,
    end: Result<ListEnd, String>,
}

fn decoder<K: DeserializeOwned + Send + Sync + 'static>(slice: usize) -> ListDecoder<K> {
    let decoder = ListDecoder::new(PrunePaths::default());
    ListDecoder { slice, decode_threshold: slice, ..decoder }
}

fn decode<'a, K: DeserializeOwned + Send + Sync + 'static>(
    slice: usize,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    name: impl Fn(&K) -> Option<&String>,
) -> Outcome {
    let mut decoder = decoder::<K>(slice);
    let mut items = Vec::new();
    let mut end = Ok(());
    for piece in pieces {
        match decoder.push(piece) {
            Ok(more) => items.extend(more),
            Err(error) => {
                end = Err(error.to_string());
                break;
            }
        }
    }
    let end = end.and_then(|()| {
        let (more, end) = decoder.finish().map_err(|error| error.to_string())?;
        items.extend(more);
        Ok(end)
    });
    let items = items.into_iter().map(|item| item.map(|object| name(&object).cloned().unwrap_or_default()));
    Outcome { items: items.collect(), end }
}

fn config_maps<'a>(slice: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    decode::<ConfigMap>(slice, pieces, |map| map.metadata.name.as_ref())
}

fn whole(body: &str) -> Outcome {
    config_maps(SLICE, [body.as_bytes()])
}

fn names(outcome: &Outcome) -> Vec<&str> {
    outcome.items.iter().flatten().map(String::as_str).collect()
}

fn refusal(body: &str) -> String {
    whole(body).end.expect_err(body)
}

const GO_ORDER: &str = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1234","continue":"abc",
"remainingItemCount":7},"items":[{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:data":{}}}]},"data":{"k":
"\u00e9\"]}"}},{"metadata":{"name":"b","resourceVersion":"12","namespace":"ns"},"data":{"k":17}},{"metadata":{"name":"c"}}]}
"#;

const ALPHABETICAL: &str = r#"
{ "apiVersion" : "v1", "extra": {"items": [1, {"a": "]"}]},
  "items" : [ { "metadata" : { "name" : "a" } } , 12, null, {} ],
  "kind" : "ConfigMapList" , "metadata" : { "resourceVersion" : "99" } }"#;

#[test]
fn list_in_the_field_order_of_go_is_decoded() {
    let outcome = whole(GO_ORDER);
    assert_eq!(names(&outcome), ["a", "c"]);
    let end = ListEnd {
        resource_version: "1234".into(),
        continue_token: Some("abc".into()),
        remaining_item_count: Some(7),
    };
    assert_eq!(outcome.end, Ok(end));
}

#[test]
fn i10_undecodable_item_is_rejected_at_its_position() {
    let outcome = whole(GO_ORDER);
    let rejected = outcome.items[1].as_ref().expect_err("a number instead of a string");
    assert_eq!(rejected.key, Some(informer_core::ObjectKey::namespaced("ns", "b")));
    assert_eq!(rejected.resource_version, "12".into());
    assert_eq!(rejected.error, "unexpected integer at data.k");
}

#[test]
fn i10_item_with_an_unpaired_surrogate_is_rejected() {
    let body = r#"{"items":[{"metadata":{"name":"a","namespace":"ns"},"data":{"k":"\ud800"}},
        {"metadata":{"name":"b"}},{"data":{"\udc00":"k"}}]}"#;
    let outcome = whole(body);
    assert_eq!((names(&outcome), outcome.end.is_ok()), (vec!["b"], true));
    for (index, name) in [(0, Some("a")), (2, None)] {
        let rejected = outcome.items[index].as_ref().expect_err("an unpaired surrogate");
        assert_eq!(rejected.key, name.map(|name| informer_core::ObjectKey::namespaced("ns", name)));
        assert_eq!(rejected.error, "a string with an unpaired surrogate");
    }
}

#[test]
fn items_before_metadata_and_whitespace_are_accepted() {
    let outcome = whole(ALPHABETICAL);
    assert_eq!(names(&outcome), ["a", ""]);
    assert_eq!(outcome.items.len(), 4);
    assert_eq!(outcome.end.map(|end| end.resource_version), Ok("99".into()));
}

#[test]
fn dynamic_and_metadata_only_items_decode_too() {
    let body = [GO_ORDER.as_bytes()];
    let dynamic = decode::<DynamicObject>(SLICE, body, |object| object.metadata.name.as_ref());
    assert_eq!(names(&dynamic), ["a", "b", "c"]);
    let partial = decode::<PartialObjectMeta<ConfigMap>>(SLICE, body, |object| object.metadata.name.as_ref());
    assert_eq!(names(&partial), ["a", "b", "c"]);
}

#[test]
fn every_form_of_an_empty_list_is_accepted() {
    for body in [
        r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}"#,
        r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":null}"#,
        r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"5"}}"#,
        r#"{"metadata":{"resourceVersion":"5","continue":""},"items":[ ]}"#,
    ] {
        let outcome = whole(body);
        assert!(outcome.items.is_empty());
        assert_eq!(outcome.end, Ok(ListEnd { resource_version: "5".into(), ..ListEnd::default() }), "{body}");
    }
}

#[test]
fn missing_metadata_is_accepted() {
    assert_eq!(whole(r#"{"items":[]}"#).end, Ok(ListEnd::default()));
    assert_eq!(whole(r#"{"items":[],"metadata":null}"#).end, Ok(ListEnd::default()));
}

#[test]
fn body_that_ends_early_is_interrupted() {
    let body = GO_ORDER.trim_end();
    for end in 0..body.len() {
        let outcome = whole(&body[..end]);
        let error = outcome.end.expect_err("an early end");
        assert!(error.starts_with("the response is incomplete: "), "{error} at {end}");
    }
}

#[test]
fn other_json_is_refused_and_not_quoted() {
    for body in [
        "<html>hunter2</html>",
        "hunter2",
        "[]",
        "\"hunter2\"",
        r#"{"error":"hunter2"}"#,
        "{}",
        r#"{"kind":"Secret","metadata":{"name":"hunter2"}}"#,
        r#"{"items":{"hunter2":1}}"#,
        r#"{"items":"hunter2"}"#,
        r#"{"items":[{} {}]}"#,
        r#"{"items":[{"hunter2":}]}"#,
        r#"{"items":[],}"#,
        r#"{"items":[,]}"#,
        r#"{"items":[]} hunter2"#,
        r#"{"metadata":{"resourceVersion":17},"items":[]}"#,
        r#"{"metadata":"hunter2","items":[]}"#,
        r#"{"kind":17,"items":[]}"#,
        r#"{hunter2:1}"#,
        r#"{"a" "b"}"#,
    ] {
        let error = refusal(body);
        assert!(error.contains("not a Kubernetes list"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_table_is_refused_by_its_name() {
    let error = refusal(r#"{"kind":"Table","columnDefinitions":[],"rows":[]}"#);
    assert!(error.contains("it is a Table"), "{error}");
}

#[test]
fn status_instead_of_a_list_is_returned_as_an_error() {
    for body in [
        r#"{"kind":"Status","metadata":{},"status":"Failure","message":"no","reason":"Expired","code":410}"#,
        r#"{"code":410,"kind":"Status","message":"no","metadata":{},"reason":"Expired","status":"Failure"}"#,
    ] {
        let mut decoder = decoder::<ConfigMap>(1);
        for byte in body.bytes() {
            assert!(decoder.push(&[byte]).is_ok_and(|items| items.is_empty()));
        }
        let error = decoder.finish().expect_err("a status");
        assert!(error.is_expired(), "{error}");
    }
    assert!(refusal(r#"{"kind":"Status","status":"Success"}"#).contains("a Status that reports success"));
}

#[test]
fn a_body_split_in_two_anywhere_gives_the_same_list() {
    for body in [GO_ORDER, ALPHABETICAL] {
        let expected = whole(body);
        for (at, slice) in (0..=body.len()).flat_map(|at| [(at, 1), (at, SLICE)]) {
            let (front, back) = body.as_bytes().split_at(at);
            assert_eq!(config_maps(slice, [front, back]), expected, "split at {at}");
        }
    }
}

#[test]
fn a_byte_order_mark_and_white_space_are_tolerated() {
    let marked = format!("\u{feff}\r\n {}\n\n", GO_ORDER.trim());
    assert_eq!(whole(&marked), whole(GO_ORDER));
    assert_eq!(config_maps(1, marked.as_bytes().chunks(1)), whole(GO_ORDER));
    let status = "\u{feff}{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no\",\"code\":403}";
    assert!(refusal(status).contains("403"), "{}", refusal(status));
    for cut in ["\u{feff}", "\u{feff} "].iter().map(|body| body.as_bytes()) {
        for end in 1..cut.len() {
            let error = config_maps(1, [&cut[..end]]).end.expect_err("an early end");
            assert!(error.contains("not a Kubernetes list") || error.contains("ended early"), "{error}");
        }
    }
}

#[test]
fn a_large_item_in_small_pieces_takes_linear_time() {
    // If each piece restarted decoding at the start of the item, this test would take hours.
    let item = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"k":"{}"}}}}"#, "x".repeat(10 * 1024 * 1024));
    let body = format!(r#"{{"items":[{item},{{"metadata":{{"name":"b"}}}}]}}"#);
    let outcome = config_maps(SLICE, body.as_bytes().chunks(64));
    assert_eq!(names(&outcome), ["a", "b"]);
}

/// Returns a list of a few megabytes, with small and large items.
fn large_list() -> String {
    let items: Vec<_> = (0..1_000)
        .map(|index| {
            let times = if index % 100 == 0 { 20_000 } else { index % 50 };
            let value = "\u{e9}\\\"}],".repeat(times);
            serde_json::json!({"metadata": {"name": format!("m-{index}")}, "data": {"k": value}}).to_string()
        })
        .collect();
    format!(
        r#"{{"kind":"ConfigMapList","metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#,
        items.join(",")
    )
}

#[test]
fn debug_output_of_a_decoder_contains_no_object() -> Result<(), ListWatchError> {
    let mut decoder = ListDecoder::<ConfigMap>::new(PrunePaths::default());
    decoder.push(br#"{"items":[{"data":{"password":"hunter2"#)?;
    assert!(!format!("{decoder:?}").contains("hunter2"));
    Ok(())
}

/// Splits a body at the given positions.
fn pieces<'a>(body: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len())).collect();
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_large_body_split_anywhere_gives_the_same_list(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3000),
    ) {
        let body = large_list();
        let outcome = config_maps(SLICE, pieces(body.as_bytes(), &cuts));
        prop_assert!(outcome.end.is_ok());
        let expected: Vec<_> = (0..1_000).map(|index| format!("m-{index}")).collect();
        prop_assert_eq!(names(&outcome), expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn a_body_cut_anywhere_gives_the_same_list(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        slice in 1..100_usize,
        alphabetical: bool,
    ) {
        let body = if alphabetical { ALPHABETICAL } else { GO_ORDER }.as_bytes();
        prop_assert_eq!(config_maps(slice, pieces(body, &cuts)), config_maps(SLICE, [body]));
    }

    #[test]
    fn any_body_is_decoded_without_panic(body in r#"\{"items":[\[\]{}",:a0-9\\ -]{0,40}"#, slice in 1..8_usize) {
        let whole = config_maps(SLICE, [body.as_bytes()]);
        let cut = config_maps(slice, body.as_bytes().chunks(1));
        prop_assert_eq!(whole.end.is_ok(), cut.end.is_ok());
    }
}
