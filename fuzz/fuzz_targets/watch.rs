//! The body of a watch, split anywhere: the decoder returns the same objects as `serde_json`, and never panics.
#![no_main]

use std::fmt::Debug;

use informer_core::{ListWatchError, WatchEvent};
use informer_fuzz::{event_text, has_unique_fields, split};
use informer_reflector::{PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::ConfigMap;
use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Some((body, pieces)) = split(input) else { return };
    let whole = decode::<Value>(PrunePaths::none(), &[body]);
    let split = decode::<Value>(PrunePaths::none(), &pieces);
    assert_eq!(text(&whole), text(&split));
    if let Ok(events) = whole {
        let lines: Vec<_> = lines(body).collect();
        assert_eq!(lines.len(), events.len());
        for (line, event) in lines.into_iter().zip(events) {
            compare(line, &event);
        }
    }
    let whole = decode::<ConfigMap>(PrunePaths::default(), &[body]);
    let split = decode::<ConfigMap>(PrunePaths::default(), &pieces);
    assert_eq!(text(&whole), text(&split));
});

fn decode<K: DeserializeOwned + Send + Sync + 'static>(
    paths: PrunePaths,
    pieces: &[&[u8]],
) -> Result<Vec<WatchEvent<K>>, ListWatchError> {
    let mut decoder = WatchDecoder::new(paths);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.push(piece)?);
    }
    events.extend(decoder.finish()?);
    Ok(events)
}

fn text<K: Debug + 'static>(decoded: &Result<Vec<WatchEvent<K>>, ListWatchError>) -> String {
    format!("{:?}", decoded.as_ref().map(|events| events.iter().map(event_text).collect::<Vec<_>>()))
}

/// Returns the non-empty lines in the body of a watch, without a byte order mark and without white
/// space at their ends.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty())
}

fn compare(line: &[u8], event: &WatchEvent<Value>) {
    if !has_unique_fields(line) {
        return;
    }
    let Ok(expected) = serde_json::from_slice::<Value>(line) else { return };
    let Some(object) = expected.get("object") else { return };
    let decoded = match (expected["type"].as_str(), event) {
        (Some("ADDED"), WatchEvent::Added(decoded))
        | (Some("MODIFIED"), WatchEvent::Modified(decoded))
        | (Some("DELETED"), WatchEvent::Deleted(decoded)) => decoded,
        (Some("ADDED" | "MODIFIED" | "DELETED"), other) => panic!("{other:?}"),
        _ => return,
    };
    assert_eq!(**decoded, *object);
}
