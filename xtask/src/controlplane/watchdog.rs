//! Kills servers that outlive this program. Usually `Drop` stops the servers, but not if this program
//! receives SIGKILL. Therefore a shell reads a pipe from this program, and kills the servers when the pipe
//! closes.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::process::own_group;

/// Reads process IDs until the pipe from this program closes, then kills these processes and
/// removes their folder.
const SCRIPT: &str = r#"
pids=
while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do kill -9 "$pid"; done
sleep 1
rm -rf "$1"
"#;

/// A shell that kills the processes of [`Self::kill_at_exit`] if this program ends without stopping
/// them. Dropping the watchdog kills only the shell.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
}

impl Watchdog {
    /// Starts the watchdog, which also removes the folder `dir` when it kills the processes.
    pub(crate) fn start(dir: &Path) -> anyhow::Result<Self> {
        let mut command = Command::new("sh");
        command
            .args(["-c", SCRIPT, "sh"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = own_group(&mut command)
            .spawn()
            .context("cannot start `sh`; the control plane needs a Unix system")?;
        Ok(Self { child })
    }

    /// Adds a process that the watchdog kills if this program ends without stopping it.
    pub(crate) fn kill_at_exit(&mut self, pid: u32) -> anyhow::Result<()> {
        let pipe = self.child.stdin.as_mut();
        let pipe = pipe.context(
            "cannot send a process ID to the watchdog, because its standard input is closed; report this \
             as a bug of xtask",
        )?;
        writeln!(pipe, "{pid}")
            .context("the watchdog process has ended. Without it, servers can be left running if this program is killed; run the command again")
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Kill the watchdog before its pipe closes, so that it kills no server. An error means that it has already
        // ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_pipe_kills_processes_and_removes_folder() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut guarded = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let mut watchdog = Watchdog::start(dir.path()).expect("sh starts");
        watchdog.kill_at_exit(guarded.id()).expect("the pipe is open");
        drop(watchdog.child.stdin.take());
        assert!(!guarded.wait().expect("the process ends").success());
        watchdog.child.wait().expect("the watchdog ends");
        assert!(!dir.path().exists());
    }

    #[test]
    fn dropped_watchdog_kills_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut guarded = Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let mut watchdog = Watchdog::start(dir.path()).expect("sh starts");
        watchdog.kill_at_exit(guarded.id()).expect("the pipe is open");
        drop(watchdog);
        assert!(guarded.try_wait().expect("a child process").is_none());
        assert!(dir.path().exists());
        guarded.kill().expect("a running process");
        guarded.wait().expect("the process ends");
    }
}
