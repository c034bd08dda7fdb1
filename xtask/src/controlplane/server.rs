//! One server process with its log.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};

use crate::process::own_group;

/// Number of lines from the end of a server's log in an error message.
const TAIL_LINES: usize = 20;

/// A server process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Server {
    /// Starts `program` and writes its output to `NAME.log` in `dir`.
    pub(crate) fn spawn(name: &str, program: &Path, args: Vec<String>, dir: &Path) -> anyhow::Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new(program);
        command
            .args(args)
            // The user's settings must not affect the tests: etcd reads ETCD_* variables, and KWOK reads a file in the
            // home folder.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir)
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        // A separate group: the terminal's Ctrl-C must not end the servers before their clients.
        let child =
            own_group(&mut command).spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { name: name.to_owned(), log, child })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the server has ended. The error contains the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}); {}", self.name, self.log_tail()),
        }
    }

    /// Returns the end and the path of the log, for an error message.
    pub(crate) fn log_tail(&self) -> String {
        let path = self.log.display();
        match std::fs::read(&self.log) {
            Ok(log) => format!("the end of its log, {path}:\n{}", tail(&String::from_utf8_lossy(&log))),
            Err(error) => format!("its log, {path}, cannot be read: {error}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Kill the server, because a graceful shutdown takes seconds, and the data is not used again.
        // An error means that the process has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn tail(log: &str) -> String {
    let mut lines: Vec<&str> = log.lines().rev().take(TAIL_LINES).collect();
    lines.reverse();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_server_is_reported_with_its_log() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let args = vec!["-c".to_owned(), "echo no such flag; exit 3".to_owned()];
        let mut server = Server::spawn("broken", Path::new("/bin/sh"), args, dir.path()).expect("sh starts");
        server.child.wait().expect("sh ends");
        let error = server.check().expect_err("the server has ended").to_string();
        assert!(error.contains("broken ended (exit status: 3)"), "{error}");
        assert!(error.contains("no such flag"), "{error}");
        assert!(error.contains("broken.log"), "{error}");
    }

    #[test]
    fn the_tail_is_short() {
        let log: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let tail = tail(&log);
        assert_eq!(tail.lines().count(), TAIL_LINES);
        assert!(tail.ends_with("line 99"));
    }
}
