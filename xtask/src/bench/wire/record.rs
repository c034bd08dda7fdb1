//! Records the responses to replay: runs the recorder (`xtask/wire/record.rs`) against a real API
//! server.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use serde::Deserialize;

use super::programs::Programs;
use crate::signals::Signals;
use crate::{apiserver, controlplane, workspace};

/// The file that the recorder writes at the end of a complete recording.
const DESCRIPTION: &str = "recording.json";

/// The content of the file `recording.json`: the number of pods and the server's version.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Description {
    /// The number of recorded pods.
    pub(crate) objects: usize,
    /// The version of the API server.
    pub(crate) server: String,
}

/// Returns the folder with a recording of `objects` pods. Records first if there is no recording or
/// if `again` is set.
pub(crate) fn ensure(
    objects: usize,
    again: bool,
    programs: &Programs,
    signals: &Signals,
) -> anyhow::Result<(PathBuf, Description)> {
    let folder = workspace::root().join("target/bench-wire").join(objects.to_string());
    if !again && let Ok(description) = describe(&folder) {
        return Ok((folder, description));
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    // Without this file, a recording that is interrupted counts as incomplete.
    let _ = std::fs::remove_file(folder.join(DESCRIPTION));
    eprintln!("recording {objects} pods; 20,000 take some minutes");
    record(&folder, objects, programs, signals)?;
    let description = describe(&folder)?;
    Ok((folder, description))
}

fn describe(folder: &Path) -> anyhow::Result<Description> {
    let path = folder.join(DESCRIPTION);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} has an unexpected format", path.display()))
}

fn record(folder: &Path, objects: usize, programs: &Programs, signals: &Signals) -> anyhow::Result<()> {
    let options = controlplane::Options::default();
    let servers = controlplane::Programs::find(&options, signals)?;
    let mut cluster = apiserver::start(&options, &servers, signals)?;
    let mut command = Command::new(programs.recorder());
    command.arg(folder).arg(objects.to_string());
    if apiserver::run_against(&mut cluster, &servers, &mut command, signals)? != ExitCode::SUCCESS {
        bail!("the recorder failed; see its message above");
    }
    Ok(())
}
