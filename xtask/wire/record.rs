//! Fills the API server of `KUBECONFIG` with pods, and records its responses. The arguments are the
//! folder of the recording and the number of pods.
//!
//! The first files are raw bodies: `list`, `initial` (a streaming list up to its bookmark) and
//! `events` (a watch of two updates of each pod), each in JSON and protobuf. The last file,
//! `recording.json`, contains the number of pods and the server's version.

mod bodies;
mod cluster;
mod pods;

use std::path::PathBuf;

use anyhow::Context;
use serde_json::json;

use self::bodies::{ENCODINGS, Recorder};
use self::cluster::Cluster;

/// The number of updates of each pod while the watches are recorded.
const PASSES: usize = 2;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let folder = PathBuf::from(args.next().context("the argument FOLDER is missing")?);
    let objects: usize = args.next().context("the argument OBJECTS is missing")?.parse()?;
    let client = kube::Client::try_default().await?;
    let server = client.apiserver_version().await?.git_version;
    let cluster = Cluster::new(client.clone(), objects);
    cluster.create().await?;
    cluster.update(0).await?;

    let recorder = Recorder::new(client, folder);
    for encoding in &ENCODINGS {
        recorder.list(encoding).await?;
        recorder.initial(encoding, objects).await?;
    }
    let mut watches = Vec::new();
    for encoding in &ENCODINGS {
        watches.push(recorder.events(encoding, PASSES * objects).await?);
    }
    for pass in 1..=PASSES {
        cluster.update(pass).await?;
    }
    for watch in watches {
        watch.await.context("the task that records a watch panicked")??;
    }
    recorder.write(
        "recording.json",
        format!("{:#}\n", json!({ "objects": objects, "server": server })).as_bytes(),
    )
}
