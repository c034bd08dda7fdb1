//! [`Objects`]: any number of objects, made from a recording that can have fewer objects.
//!
//! If necessary, recorded objects are cloned. A clone has other identifiers of the same length, so
//! that no client uses less memory because objects are equal. An identifier is a generated text in
//! a pod, such as its UID. A frame is the encoded watch event of an object.

use std::ops::Range;
use std::sync::Arc;

use anyhow::bail;
use memchr::memmem;
use serde_json::Value;

use super::forms::Encoding;
use super::recording::Recording;

/// The positions of identifiers in each recorded object, in one encoding.
#[derive(Debug)]
pub(crate) struct Places(Vec<Vec<Place>>);

/// The position of an identifier in the frame of an object.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    /// The index of the identifier in the list that [`identifiers`] returns for the object. An
    /// identifier that occurs several times in the object has several places.
    identifier: usize,
    /// The position in the frame, in bytes.
    bytes: Range<usize>,
}

impl Places {
    /// Finds the identifiers in `recording`. `json` must have the same objects in the same order.
    pub(crate) fn find(json: &Recording, recording: &Recording) -> anyhow::Result<Self> {
        let places = (0..recording.objects()).map(|index| {
            let event: Value = serde_json::from_slice(json.initial.get(index))?;
            Ok(places(&identifiers(&event["object"]), recording.initial.get(index)))
        });
        Ok(Self(places.collect::<anyhow::Result<_>>()?))
    }
}

/// Returns the identifiers of a pod, such as its UID. A missing identifier is an empty text, except that
/// containers without an ID are left out.
fn identifiers(pod: &Value) -> Vec<&str> {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    // The hyphen makes other matches of the short suffix of a name improbable.
    let end_of = |name: &'static str| {
        let name = text(name);
        name.rfind('-').map_or("", |at| &name[at..])
    };
    let mut found = vec![
        text("/metadata/labels/pod-template-hash"),
        end_of("/metadata/name"),
        text("/metadata/uid"),
        text("/metadata/ownerReferences/0/uid"),
        text("/status/podIP"),
        end_of("/spec/volumes/1/name"),
    ];
    let statuses = pod["status"]["containerStatuses"].as_array();
    let ids = statuses
        .into_iter()
        .flatten()
        .filter_map(|status| status["containerID"].as_str()?.rsplit('/').next());
    found.extend(ids);
    found
}

fn places(identifiers: &[&str], frame: &[u8]) -> Vec<Place> {
    let identifiers = identifiers.iter().enumerate().filter(|(_, text)| !text.is_empty());
    identifiers
        .flat_map(|(identifier, text)| {
            memmem::find_iter(frame, text.as_bytes())
                .map(move |start| Place { identifier, bytes: start..start + text.len() })
        })
        .collect()
}

/// The objects and events that the replaying server sends to a client.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    recording: Arc<Recording>,
    places: Option<Arc<Places>>,
    count: usize,
}

impl Objects {
    pub(crate) fn recorded(recording: Arc<Recording>) -> Self {
        Self { count: recording.objects(), recording, places: None }
    }

    /// Returns `count` objects: recorded ones and, if these are too few, clones of them.
    pub(crate) fn with_clones(recording: Arc<Recording>, places: Arc<Places>, count: usize) -> Self {
        Self { recording, places: Some(places), count }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.recording.encoding
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn event(&self, index: usize) -> &[u8] {
        self.recording.events.get(index)
    }

    pub(crate) fn events(&self) -> usize {
        self.recording.events.len()
    }

    pub(crate) fn bookmark(&self) -> &[u8] {
        self.recording.bookmark()
    }

    /// Returns the recorded response to a list request. Fails unless `self` has exactly the
    /// recorded objects.
    pub(crate) fn list(&self) -> anyhow::Result<&[u8]> {
        if self.count != self.recording.objects() {
            bail!(
                "a client sent a list request in a run with {} objects, but the only recorded list has {} \
                 objects; in this run, the client must request a streaming list",
                self.count,
                self.recording.objects()
            );
        }
        Ok(&self.recording.list)
    }

    /// Appends the frame of the object `index`, which can be a clone, to `block`.
    pub(crate) fn append(&self, index: usize, block: &mut Vec<u8>) {
        let recorded = self.recording.objects();
        let start = block.len();
        block.extend_from_slice(self.recording.initial.get(index % recorded));
        let clone = index / recorded;
        if let Some(places) = self.places.as_ref().filter(|_| clone > 0) {
            for place in &places.0[index % recorded] {
                let bytes = start + place.bytes.start..start + place.bytes.end;
                change(&mut block[bytes], clone, place.identifier);
            }
        }
    }
}

/// Replaces the characters of an identifier pseudorandomly: digits by digits, letters by letters.
/// The result depends only on the arguments.
fn change(text: &mut [u8], clone: usize, identifier: usize) {
    // Digits stay digits, and the letters `a` to `f` stay in this range, so that a hexadecimal
    // number stays hexadecimal.
    for (position, byte) in text.iter_mut().enumerate() {
        let shift = pseudorandom_byte(((clone * 64 + identifier) * 256 + position) as u64);
        let rotated = |first: u8, count: u8| {
            first + ((u16::from(*byte - first) + u16::from(shift)) % u16::from(count)) as u8
        };
        *byte = match *byte {
            b'0'..=b'9' => rotated(b'0', 10),
            b'a'..=b'f' => rotated(b'a', 6),
            b'g'..=b'z' => rotated(b'g', 20),
            other => other,
        };
    }
}

/// Returns the highest byte of the `number`th output of the generator `SplitMix64` with seed 0.
fn pseudorandom_byte(number: u64) -> u8 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_places_of_an_identifier_are_found() {
        let place = |identifier, bytes| Place { identifier, bytes };
        assert_eq!(places(&["ab", "", "c"], b"ab-c-ab"), [place(0, 0..2), place(0, 5..7), place(2, 3..4)]);
    }

    #[test]
    fn change_keeps_kinds_of_characters_and_differs() {
        let of = |clone| {
            let mut text = *b"0f7e-zz9";
            change(&mut text, clone, 3);
            text
        };
        let distinct: std::collections::HashSet<_> = (1..50).map(of).collect();
        assert_eq!(distinct.len(), 49);
        assert!(distinct.iter().all(|text| text[..4].iter().all(u8::is_ascii_hexdigit) && text[4] == b'-'));
    }
}
