//! The body of a watch or list in protobuf, split anywhere: the decoders never panic. They return
//! the same objects however the body is split, and whether they decode directly or through a tape
//! (a list of tokens).
#![no_main]

use std::fmt;

use informer_core::ListWatchError;
use informer_fuzz::{event_text, item_text, split};
use informer_reflector::{Encoding, ListDecoder, PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::Pod;
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use serde::de::DeserializeOwned;

fuzz_target!(|input: &[u8]| {
    let Some((body, pieces)) = split(input) else { return };
    let (watched, listed) = (watch::<Pod>(&[body]), list::<Pod>(&[body]));
    assert_eq!(watched, watch::<Pod>(&pieces));
    assert_eq!(watched, watch::<FromTape>(&[body]));
    assert_eq!(listed, list::<Pod>(&pieces));
    assert_eq!(listed, list::<FromTape>(&[body]));
});

/// A pod that is always decoded through a tape. Direct decoding applies only to the type `Pod`
/// itself, and not to types that contain it.
#[derive(Deserialize)]
#[serde(transparent)]
struct FromTape(Pod);

impl fmt::Debug for FromTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

trait Object: DeserializeOwned + fmt::Debug + Send + Sync + 'static {}

impl<K: DeserializeOwned + fmt::Debug + Send + Sync + 'static> Object for K {}

/// Returns a text with the decoded events. If a piece cannot be decoded, the text has only the
/// error.
fn watch<K: Object>(pieces: &[&[u8]]) -> String {
    let mut decoder = WatchDecoder::<K>::new(PrunePaths::default()).encoding(Encoding::Protobuf);
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

/// Returns a text with the decoded items and the list's data, such as the continue token. If the
/// list cannot be decoded, the text has only the error.
fn list<K: Object>(pieces: &[&[u8]]) -> String {
    let mut decoder = ListDecoder::<K>::new(PrunePaths::default()).encoding(Encoding::Protobuf);
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
