//! [`Recorder`]: writes bodies of responses to files. The body of a watch consists of frames, one
//! for each event.

use std::path::PathBuf;

use anyhow::{Context, bail};
use futures::StreamExt;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use tokio::task::JoinHandle;

/// An encoding of responses. `name` is the extension of its files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    name: &'static str,
    media_type: &'static str,
    /// Returns the length of the first frame of the bytes, or `None` if the frame is incomplete.
    frame: fn(&[u8]) -> Option<usize>,
}

pub(crate) const ENCODINGS: [Encoding; 2] = [
    Encoding { name: "json", media_type: "application/json", frame: line },
    Encoding { name: "protobuf", media_type: "application/vnd.kubernetes.protobuf", frame: length_prefixed },
];

fn line(bytes: &[u8]) -> Option<usize> {
    Some(bytes.iter().position(|byte| *byte == b'\n')? + 1)
}

/// Returns the length of the first frame. The length includes the first four bytes, which contain
/// the length of the content.
fn length_prefixed(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    let end = 4 + usize::try_from(u32::from_be_bytes(*length)).ok()?;
    (bytes.len() >= end).then_some(end)
}

#[derive(Clone)]
pub(crate) struct Recorder {
    client: Client,
    folder: PathBuf,
}

impl Recorder {
    pub(crate) fn new(client: Client, folder: PathBuf) -> Self {
        Self { client, folder }
    }

    /// Records the response to a list of all pods in `list.json` or `list.protobuf`.
    pub(crate) async fn list(&self, encoding: &Encoding) -> anyhow::Result<()> {
        let body = self.body("/api/v1/pods", encoding).await?.collect().await?.to_bytes();
        self.write(&format!("list.{}", encoding.name), &body)
    }

    /// Records a streaming list of `objects` pods, up to its bookmark, in `initial.json` or
    /// `initial.protobuf`.
    pub(crate) async fn initial(&self, encoding: &Encoding, objects: usize) -> anyhow::Result<()> {
        let path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
            &allowWatchBookmarks=true";
        let body = frames(self.body(path, encoding).await?, encoding, objects + 1).await?;
        self.write(&format!("initial.{}", encoding.name), &body)
    }

    /// Starts a watch of pods without initial objects. The returned task records the first `count`
    /// events in `events.json` or `events.protobuf`.
    pub(crate) async fn events(
        &self,
        encoding: &Encoding,
        count: usize,
    ) -> anyhow::Result<JoinHandle<anyhow::Result<()>>> {
        // Without a version, `sendInitialEvents=false` requests only events from now on.
        let path = "/api/v1/pods?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan\
            &timeoutSeconds=36000";
        let body = self.body(path, encoding).await?;
        let (recorder, encoding) = (self.clone(), *encoding);
        Ok(tokio::spawn(async move {
            let body = frames(body, &encoding, count).await?;
            recorder.write(&format!("events.{}", encoding.name), &body)
        }))
    }

    async fn body(&self, path: &str, encoding: &Encoding) -> anyhow::Result<Body> {
        let request = http::Request::get(path).header("Accept", encoding.media_type).body(Body::empty())?;
        let response = self.client.send(request).await?;
        if !response.status().is_success() {
            bail!("GET {path} failed with status {}", response.status());
        }
        Ok(response.into_body())
    }

    pub(crate) fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns the first `count` frames of the body. Fails if the body ends before.
async fn frames(body: Body, encoding: &Encoding, count: usize) -> anyhow::Result<Vec<u8>> {
    let mut chunks = body.into_data_stream();
    let (mut bytes, mut end, mut complete) = (Vec::new(), 0, 0);
    while complete < count {
        let chunk = chunks.next().await.context("the watch ended early")?.context("the watch failed")?;
        bytes.extend_from_slice(&chunk);
        while complete < count
            && let Some(length) = (encoding.frame)(&bytes[end..])
        {
            end += length;
            complete += 1;
        }
    }
    bytes.truncate(end);
    Ok(bytes)
}
