//! Tests of [`WatchDecoder`] with valid and invalid bodies, split at any position.

use informer_core::{Bookmark, ObjectKey, RejectedKind, RejectedObject};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use proptest::prelude::*;

use super::*;

fn decoder<K: DeserializeOwned + Send + Sync + 'static>() -> WatchDecoder<K> {
    WatchDecoder::new(PrunePaths::default())
}

/// Decodes a body that arrives in the given pieces.
fn watch<'a, K: DeserializeOwned + Send + Sync + 'static>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
    let mut decoder = decoder();
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.push(piece)?);
    }
    events.extend(decoder.finish()?);
    Ok(events)
}

/// Decodes pods. Returns a text with the events and their objects, whose content the events' `Debug`
/// output lacks.
fn text<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let event_text = |event: &WatchEvent<Pod>| match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
            format!("{event:?} {:?}", **pod)
        }
        other => format!("{other:?}"),
    };
    format!("{:?}", watch(pieces).map(|events| events.iter().map(event_text).collect::<Vec<_>>()))
}

fn one(line: &str) -> WatchEvent<Pod> {
    let mut events = watch([line.as_bytes()]).expect(line);
    assert_eq!(events.len(), 1, "{line}");
    events.remove(0)
}

fn rejected(line: &str) -> (RejectedKind, RejectedObject) {
    match one(line) {
        WatchEvent::RejectedObject { kind, object } => (kind, object),
        other => panic!("{other:?}"),
    }
}

const BODY: &str = concat!(
    r#"{"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}}"#,
    "\n\r\n\n",
    r#"{"object":{"metadata":{"name":"b"}},"type":"MODIFIED"}"#,
    "\r\n",
    r#"  {"type":"DELETED","object":{"metadata":{"name":"c","labels":17}},"more":[1]}"#,
    "\n",
    r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"},"spec":{"containers":null}}}"#,
    "\n{broken}\n",
    r#"{"type":"ADDED","object":{"metadata":{"name":"d"}}}"#,
);

#[test]
fn each_type_of_event_is_decoded() -> Result<(), ListWatchError> {
    let events = watch::<Pod>([BODY.as_bytes()])?;
    let [added, modified, deleted, bookmark, broken, last] = &events[..] else { panic!("{events:?}") };
    let name = |pod: &Pod| pod.metadata.name.clone().unwrap_or_default();
    assert!(
        matches!(added, WatchEvent::Added(pod) if name(pod) == "a" && pod.metadata.managed_fields.is_none())
    );
    assert!(matches!(modified, WatchEvent::Modified(pod) if name(pod) == "b"));
    assert!(matches!(deleted, WatchEvent::RejectedObject { kind: RejectedKind::Deleted, .. }));
    assert!(matches!(bookmark, WatchEvent::Bookmark(_)));
    assert!(matches!(broken, WatchEvent::RejectedObject { kind: RejectedKind::Unknown, .. }));
    assert!(matches!(last, WatchEvent::Added(pod) if name(pod) == "d"));
    Ok(())
}

#[test]
fn a_bookmark_is_decoded_as_metadata_only() {
    let bookmark = |metadata: &str| {
        let line = format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{metadata},"spec":{{"containers":null}}}}}}"#
        );
        match one(&line) {
            WatchEvent::Bookmark(bookmark) => bookmark,
            other => panic!("{other:?}"),
        }
    };
    let at =
        |version: &str, initial_events_end| Bookmark { resource_version: version.into(), initial_events_end };
    assert_eq!(bookmark(r#"{"resourceVersion":"7"}"#), at("7", false));
    assert_eq!(bookmark(r#"{"resourceVersion":"7","annotations":{"other":"true"}}"#), at("7", false));
    let annotated = |value| {
        format!(
            r#"{{"resourceVersion":"8","annotations":{{"a":"b","k8s.io/initial-events-end":"{value}"}}}}"#
        )
    };
    assert_eq!(bookmark(&annotated("true")), at("8", true));
    assert_eq!(bookmark(&annotated("false")), at("8", false));
    assert_eq!(bookmark(r#"{"annotations":null}"#), at("", false));
}

#[test]
fn error_event_has_a_status_even_if_undecodable() {
    let status = |line: &str| match one(line) {
        WatchEvent::Error(status) => (status.code, status.reason),
        other => panic!("{other:?}"),
    };
    let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"m"}}"#;
    assert_eq!(status(expired), (410, "Expired".into()));
    assert_eq!(status(r#"{"type":"ERROR","object":{"code":"many"}}"#), (500, "InternalError".into()));
    assert_eq!(status(r#"{"type":"ERROR","object":null}"#), (500, "InternalError".into()));
    // A status that is not inside an event, as a proxy can insert it into the stream.
    assert_eq!(status(r#"{"kind":"Status","code":503,"reason":"ServiceUnavailable"}"#).0, 503);
}

#[test]
fn undecodable_object_is_reported_with_key_and_version() {
    let object =
        r#"{"metadata":{"name":"a","namespace":"ns","resourceVersion":"5"},"spec":{"nodeName":false}}"#;
    for (event_type, expected) in [
        ("ADDED", RejectedKind::Changed),
        ("MODIFIED", RejectedKind::Changed),
        ("DELETED", RejectedKind::Deleted),
        ("EXPLODED", RejectedKind::Unknown),
    ] {
        for line in [
            format!(r#"{{"type":"{event_type}","object":{object}}}"#),
            format!(r#"{{"object":{object},"type":"{event_type}"}}"#),
        ] {
            let (kind, object) = rejected(&line);
            assert_eq!(kind, expected, "{line}");
            assert_eq!(object.key, Some(ObjectKey::namespaced("ns", "a")), "{line}");
            assert_eq!(object.resource_version, "5".into(), "{line}");
        }
    }
}

#[test]
fn error_describes_the_mistake_without_the_value() {
    let (_, object) = rejected(r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":"hunter2"}}"#);
    assert_eq!(object.error, "unexpected string at spec");
    let (_, object) = rejected(r#"{"type":"ADDED","object":{"metadata":"hunter2"}}"#);
    assert_eq!(object.key, None);
    assert!(!object.error.contains("hunter2"), "{}", object.error);
}

#[test]
fn i10_malformed_event_does_not_end_the_stream() -> Result<(), ListWatchError> {
    for line in [
        "{}",
        "{\"type\":\"ADDED\"}",
        "{\"object\":{}}",
        "{\"type\":17,\"object\":{}}",
        "{\"type\":null}",
        "{nonsense}",
        "{} {}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\\ud800\"}}}",
        "{\"type\":\"BOOKMARK\",\"object\":{}}",
    ] {
        let body = format!("{line}\n{{\"type\":\"ADDED\",\"object\":{{}}}}\n");
        let events = watch::<Pod>([body.as_bytes()])?;
        assert!(
            matches!(events[..], [WatchEvent::RejectedObject { .. }, WatchEvent::Added(_)]),
            "{events:?}"
        );
    }
    Ok(())
}

#[test]
fn later_line_that_is_no_object_is_described() -> Result<(), ListWatchError> {
    let events = watch::<Pod>([&b"{\"type\":\"ADDED\",\"object\":{}}\n[1]\n"[..]])?;
    let [_, WatchEvent::RejectedObject { object, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(object.error, "an event without a type or without an object");
    Ok(())
}

#[test]
fn other_body_is_refused_and_not_quoted() {
    for body in ["<html>hunter2\n", "hunter2", "\n \n[hunter2]\n", "\"hunter2"] {
        let error = watch::<Pod>([body.as_bytes()]).expect_err(body);
        assert!(matches!(error, ListWatchError::Protocol(_)), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn body_that_ends_within_a_line_is_interrupted() {
    let line = r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
    for end in 1..line.len() {
        let error = watch::<Pod>([&line.as_bytes()[..end]]).expect_err("an early end");
        assert!(matches!(error, ListWatchError::Interrupted(_)), "{error} at {end}");
    }
    assert!(matches!(watch::<Pod>([line.as_bytes()]).as_deref(), Ok([WatchEvent::Added(_)])));
    assert!(matches!(watch::<Pod>([]).as_deref(), Ok([])));
}

#[test]
fn line_above_the_size_limit_is_refused() {
    let line = r#"{"type":"ADDED","object":{}}"#.as_bytes();
    let fits = decoder::<Pod>().max_object_size(line.len()).push(line);
    assert!(fits.is_ok());
    for pieces in [vec![line, b"\n"], line.chunks(3).collect()] {
        let mut decoder = decoder::<Pod>().max_object_size(line.len() - 1);
        let refused = pieces.into_iter().find_map(|piece| decoder.push(piece).err());
        assert!(matches!(refused, Some(ListWatchError::Protocol(_))), "{refused:?}");
    }
}

#[test]
fn a_body_split_in_two_anywhere_gives_the_same_events() {
    let expected = text([BODY.as_bytes()]);
    for at in 0..=BODY.len() {
        let (front, back) = BODY.as_bytes().split_at(at);
        assert_eq!(text([front, back]), expected, "split at {at}");
    }
    assert_eq!(text(BODY.as_bytes().chunks(1)), expected);
}

#[test]
fn a_byte_order_mark_and_keep_alive_lines_are_tolerated() {
    let expected = text([BODY.as_bytes()]);
    let marked = format!("\u{feff}\n\n \r\n{BODY}\n\n");
    assert_eq!(text([marked.as_bytes()]), expected);
    let marked = format!("\u{feff}{BODY}");
    assert_eq!(text(marked.as_bytes().chunks(1)), expected);
    let cut = watch::<Pod>(["\u{feff}{\"type\":\"ADDED\",\"obj".as_bytes()]).expect_err("an early end");
    assert!(matches!(cut, ListWatchError::Interrupted(_)), "{cut}");
}

#[test]
fn a_long_line_in_small_pieces_takes_linear_time() -> Result<(), ListWatchError> {
    // If each piece restarted decoding at the start of the line, this test would take hours.
    let pad = "x".repeat(10 * 1024 * 1024);
    let line = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a"}},"data":{{"k":"{pad}"}}}}}}"#);
    let body = format!("{line}\n{line}\n");
    let events = watch::<ConfigMap>(body.as_bytes().chunks(64))?;
    assert!(matches!(&events[..], [WatchEvent::Added(_), WatchEvent::Added(_)]));
    Ok(())
}

#[test]
fn empty_versions_and_zero_values_are_decoded() -> Result<(), ListWatchError> {
    let body = concat!(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"","creationTimestamp":null}}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"",
"creationTimestamp":null},"spec":{"containers":null},"status":{}}}"#,
    );
    let events = watch::<Pod>([body.replace(",\n", ",").as_bytes()])?;
    let [WatchEvent::Added(pod), WatchEvent::Bookmark(bookmark)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(pod.metadata.resource_version.as_deref(), Some(""));
    assert!(bookmark.resource_version.is_empty());
    Ok(())
}

#[test]
fn debug_output_of_a_decoder_contains_no_object() -> Result<(), ListWatchError> {
    let mut decoder = decoder::<ConfigMap>();
    decoder.push(br#"{"type":"ADDED","object":{"data":{"password":"hunter2"#)?;
    assert!(!format!("{decoder:?}").contains("hunter2"));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_large_body_split_anywhere_gives_the_same_events(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3000),
    ) {
        let line = |index: usize| {
            let value = "\u{e9} ".repeat(if index.is_multiple_of(100) { 50_000 } else { index % 50 });
            format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"m-{index}"}},"data":{{"k":"{value}"}}}}}}"#)
        };
        let body = (0..1_000).map(|index| line(index) + "\n").collect::<String>().into_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let events = watch::<ConfigMap>(cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]));
        let names = events.expect("events").into_iter().map(|event| match event {
            WatchEvent::Added(map) => map.metadata.name.clone().unwrap_or_default(),
            other => panic!("{other:?}"),
        });
        let expected = (0..1_000).map(|index| format!("m-{index}"));
        prop_assert_eq!(names.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}

proptest! {
    #[test]
    fn a_body_cut_anywhere_gives_the_same_events(cuts in prop::collection::vec(0..BODY.len(), 0..40)) {
        let mut cuts = cuts;
        cuts.extend([0, BODY.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &BODY.as_bytes()[cut[0]..cut[1]]);
        prop_assert_eq!(text(pieces), text([BODY.as_bytes()]));
    }

    #[test]
    fn any_body_is_decoded_without_panic(body in r#"(\{"type":"ADDED","object":)?[\[\]{}",:a0-9\\\n -]{0,40}"#) {
        drop(watch::<Pod>([body.as_bytes()]));
    }
}
