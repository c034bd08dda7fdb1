//! Runs commands, and stops them if the user interrupts this program.

use std::io::IsTerminal;
use std::process::{Child, Command, ExitCode, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::signals::Signals;

const POLL: Duration = Duration::from_millis(50);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Puts the command in its own process group, so that the terminal's Ctrl-C does not reach it.
pub(crate) fn own_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

/// Runs a command without standard input. An interrupt by the user stops the command and its
/// children.
pub(crate) fn run(command: &mut Command, signals: &Signals) -> anyhow::Result<ExitStatus> {
    run_checked(command, signals, || Ok(()))
}

/// Like [`run`], but fails with `message` if the command fails.
pub(crate) fn run_or_fail(command: &mut Command, signals: &Signals, message: &str) -> anyhow::Result<()> {
    ensure!(run(command, signals)?.success(), "{message}");
    Ok(())
}

/// Like [`run`], but calls `check` repeatedly while the command runs. An error of `check` stops the
/// command and its children, too.
pub(crate) fn run_checked(
    command: &mut Command,
    signals: &Signals,
    check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    start(command.stdin(Stdio::null()), true, signals, check)
}

/// Like [`run_checked`], but the command can read the standard input of this program. If the
/// standard input is a terminal, this function stops only the command itself, not its children.
pub(crate) fn run_interactive(
    command: &mut Command,
    signals: &Signals,
    check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    // Only the foreground group can read from a terminal. So at a terminal, the command stays in
    // the group of this program, and receives Ctrl-C itself.
    start(command, !std::io::stdin().is_terminal(), signals, check)
}

fn start(
    command: &mut Command,
    grouped: bool,
    signals: &Signals,
    mut check: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
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

/// A command that is stopped on drop.
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
        // The fallback without a `kill` program.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a signal to the process or its process group. Uses the program `kill`, because the
/// standard library can only kill a single process.
fn signal(child: &Child, group: bool, name: &str) {
    let target = format!("{}{}", if group { "-" } else { "" }, child.id());
    let status = Command::new("kill").args(["-s", name, "--", &target]).stderr(Stdio::null()).status();
    // A failure is ignored, because the caller kills the process after the grace period.
    drop(status);
}

/// Returns the standard output of an ended command. If the command failed, returns an error with its
/// standard error. `what` names the command in this error.
pub(crate) fn stdout(output: Output, what: &str) -> anyhow::Result<Vec<u8>> {
    if !output.status.success() {
        bail!("`{what}` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// Returns the exit code of an ended command. If a signal ended the command, this is 128 plus the
/// signal's number, as in a shell.
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

/// Waits until `done` returns `true`. Returns `false` if `done` still returns `false` after
/// `deadline`.
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
