//! The client's side of the protocol of `cargo xtask bench wire`: arguments, and lines on standard
//! input and output.
//!
//! A client prints `ready`, waits for a line, starts its informer, and prints `synced OBJECTS`.
//! When all handlers have the final state of each object, the client prints `done EVENTS`. The
//! client ends when its standard input ends. The clients in Go and Java also collect garbage at the
//! line `collect`, and then print `collected`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// The arguments of a client.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) server: String,
    /// How the client stores objects, for example `compressed`. The values differ between programs.
    pub(crate) form: String,
    /// Whether the client lists and then watches, instead of requesting a streaming list.
    pub(crate) is_list: bool,
    pub(crate) objects: usize,
    pub(crate) handlers: usize,
    /// The resource version of the first event in the last pass. In each pass, the server updates
    /// every object once. An object with at least this version is in its final state.
    pub(crate) last_pass: u64,
    /// The file for the time of each event; `None` if times are not recorded.
    pub(crate) times: Option<PathBuf>,
}

impl Plan {
    /// Reads the arguments `SERVER FORM MODE OBJECTS HANDLERS LAST_PASS [TIMES]`.
    pub(crate) fn from_args() -> anyhow::Result<Self> {
        let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
        let mut next = |name: &str| args.next().with_context(|| format!("the argument {name} is missing"));
        Ok(Self {
            server: next("SERVER")?,
            form: next("FORM")?,
            is_list: next("MODE")? == "list",
            objects: next("OBJECTS")?.parse().context("the argument OBJECTS is not a number")?,
            handlers: next("HANDLERS")?.parse().context("the argument HANDLERS is not a number")?,
            last_pass: next("LAST_PASS")?.parse().context("the argument LAST_PASS is not a number")?,
            times: next("TIMES").ok().map(PathBuf::from),
        })
    }
}

/// Prints and flushes a line, so that the parent process receives the line immediately.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush().context("cannot write to the standard output")
}

/// Waits for the first line on standard input. Afterwards, the process ends when its standard input
/// ends, so that the process does not outlive its parent.
pub(crate) fn wait_for_start() -> anyhow::Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("cannot read the standard input")?;
    std::thread::spawn(|| {
        std::io::stdin().lines().for_each(drop);
        std::process::exit(0);
    });
    Ok(())
}

/// Returns the time of the machine's monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds. All
/// processes of the machine share this clock, so that times from the server and from a client can
/// be compared.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let time = Duration::try_from(time).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
