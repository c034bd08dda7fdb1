//! Running a command to its end while staying able to stop it.

use std::io::IsTerminal;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::signals::Signals;

/// How often a running command is looked at.
const POLL: Duration = Duration::from_millis(50);

/// How long a command may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Puts the command in a process group of its own, out of reach of the terminal's Ctrl-C.
pub(crate) fn own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Runs `command` to its end. `check` is called meanwhile; its error stops the command, as does
/// the user.
pub(crate) fn run(
    command: &mut Command,
    signals: &Signals,
    mut check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    // At a terminal the command must stay in our group, or it could not read from the terminal;
    // there Ctrl-C reaches all of it by itself. Elsewhere a group makes its children stoppable.
    let grouped = !std::io::stdin().is_terminal();
    if grouped {
        own_group(command);
    }
    let child = command
        .spawn()
        .with_context(|| format!("cannot start `{program}`; is it installed, and is its folder on PATH?"))?;
    let mut running = Running { child, grouped };
    loop {
        if let Some(status) = running.child.try_wait()? {
            return Ok(status);
        }
        check()?;
        signals.pause(POLL)?;
    }
}

/// A command that is stopped when this goes out of scope.
#[derive(Debug)]
struct Running {
    child: Child,
    grouped: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        signal(&self.child, self.grouped, "TERM");
        let asked = Instant::now();
        while asked.elapsed() < GRACE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::park_timeout(POLL);
        }
        signal(&self.child, self.grouped, "KILL");
        // The fallback where there is no `kill` program; an error means that it has ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a signal by name. The standard library can only kill, and only one process.
fn signal(child: &Child, group: bool, name: &str) {
    let target = format!("{}{}", if group { "-" } else { "" }, child.id());
    let status = Command::new("kill").args(["-s", name, "--", &target]).stderr(Stdio::null()).status();
    // Failing to signal is not failing to stop: the caller kills after the grace period.
    drop(status);
}

/// The exit code that passes on how a command ended, as a shell would.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::FAILURE,
    }
}

/// Waits until `done` says so, for at most `deadline`; says whether it did.
pub(crate) fn wait_until(
    signals: &Signals,
    deadline: Duration,
    mut done: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    let start = Instant::now();
    while !done()? {
        if start.elapsed() > deadline {
            return Ok(false);
        }
        signals.pause(POLL)?;
    }
    Ok(true)
}
