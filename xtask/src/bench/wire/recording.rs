//! [`Recording`]: the recorded responses in one encoding.

use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::forms::Encoding;

/// The response body of a watch, divided into frames. A frame is an encoded watch event.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Frames {
    fn read(path: &Path, encoding: Encoding) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let ends = match encoding {
            Encoding::Json => lines(&bytes),
            Encoding::Protobuf => length_prefixed(&bytes),
        };
        if ends.last() != Some(&bytes.len()) {
            bail!("the recording {} ends within an object; replace it with `--record`", path.display());
        }
        Ok(Self { bytes, ends })
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns a frame with its length prefix (protobuf) or line break (JSON).
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

fn lines(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect()
}

/// Returns the ends of the complete frames. A frame begins with the length of its content, in four
/// bytes.
fn length_prefixed(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut end) = (Vec::new(), 0);
    while let Some((length, content)) = bytes[end..].split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > content.len() {
            break;
        }
        end += 4 + length;
        ends.push(end);
    }
    ends
}

/// The recorded responses of an API server, in one encoding.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) encoding: Encoding,
    pub(crate) list: Vec<u8>,
    /// The body of a streaming list: a frame for each object, and a bookmark.
    pub(crate) initial: Frames,
    /// The updates of objects, as a watch sends them. Each object has the same number of updates.
    pub(crate) events: Frames,
}

impl Recording {
    pub(crate) fn read(folder: &Path, encoding: Encoding) -> anyhow::Result<Self> {
        let file = |name: &str| folder.join(name).with_extension(encoding.extension());
        let list = file("list");
        let recording = Self {
            encoding,
            list: std::fs::read(&list).with_context(|| format!("cannot read {}", list.display()))?,
            initial: Frames::read(&file("initial"), encoding)?,
            events: Frames::read(&file("events"), encoding)?,
        };
        if recording.initial.len() < 2 || recording.events.len() == 0 {
            bail!(
                "the recording in {} has no objects or no events; replace it with `--record`",
                folder.display()
            );
        }
        Ok(recording)
    }

    pub(crate) fn objects(&self) -> usize {
        self.initial.len() - 1
    }

    /// Returns the frame of the bookmark that ends the streaming list.
    pub(crate) fn bookmark(&self) -> &[u8] {
        self.initial.get(self.objects())
    }
}

/// The used fields of a watch event in JSON.
#[derive(Deserialize)]
struct Event {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

/// Returns the resource version of each event, which is the same in both encodings.
pub(crate) fn versions(json: &Recording) -> anyhow::Result<Vec<u64>> {
    let version = |index| {
        let event: Event = serde_json::from_slice(json.events.get(index))?;
        event
            .object
            .metadata
            .resource_version
            .parse()
            .context("the resource version of an event is not a number")
    };
    (0..json.events.len()).map(version).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_end_after_line_breaks() {
        assert_eq!(lines(b"ab\nc\n"), [3, 5]);
    }

    #[test]
    fn frames_end_after_their_length() {
        assert_eq!(length_prefixed(b"\0\0\0\x02ab\0\0\0\0"), [6, 10]);
        assert_eq!(length_prefixed(b"\0\0\0\x01a\0\0\0\x02a"), [5], "the last frame is incomplete");
    }
}
