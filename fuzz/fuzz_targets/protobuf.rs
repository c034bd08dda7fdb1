//! The body of a watch or list in protobuf, split anywhere: the decoders return the same objects however the body is
//! split, and never panic.
#![no_main]

use informer_core::{ListWatchError, OwnedObject, RejectedObject, WatchEvent};
use informer_fuzz::split;
use informer_reflector::{Encoding, ListDecoder, PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::Pod;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((body, pieces)) = split(input) else { return };
    assert_eq!(watch(&[body]), watch(&pieces));
    assert_eq!(list(&[body]), list(&pieces));
});

/// Decodes the body of a watch. Returns the events as text, or the error.
fn watch(pieces: &[&[u8]]) -> String {
    let mut decoder = WatchDecoder::<Pod>::new(PrunePaths::default()).encoding(Encoding::Protobuf);
    let mut events = Vec::new();
    let mut decode = || -> Result<(), ListWatchError> {
        for piece in pieces {
            events.extend(decoder.push(piece)?.iter().map(event_text));
        }
        Ok(())
    };
    match decode() {
        Ok(()) => format!("{events:?} {:?}", decoder.finish()),
        Err(error) => format!("{error:?}"),
    }
}

/// Returns the event, with the content of its object, as text.
fn event_text(event: &WatchEvent<Pod>) -> String {
    match event {
        WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
            format!("{event:?} {:?}", **pod)
        }
        other => format!("{other:?}"),
    }
}

/// Decodes the body of a list. Returns the items and the end of the list as text, or the error.
fn list(pieces: &[&[u8]]) -> String {
    let mut decoder = ListDecoder::<Pod>::new(PrunePaths::default()).encoding(Encoding::Protobuf);
    let mut items = Vec::new();
    for piece in pieces {
        match decoder.push(piece) {
            Ok(next) => items.extend(next.into_iter().map(item_text)),
            Err(error) => return format!("{error:?}"),
        }
    }
    match decoder.finish() {
        Ok((rest, end)) => {
            items.extend(rest.into_iter().map(item_text));
            format!("{items:?} {end:?}")
        }
        Err(error) => format!("{error:?}"),
    }
}

fn item_text(item: Result<OwnedObject<Pod>, RejectedObject>) -> String {
    item.map_or_else(|rejected| format!("{rejected:?}"), |pod| format!("{:?}", *pod))
}
