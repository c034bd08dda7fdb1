//! [`Client`]: a running client program. `xtask/wire/protocol.rs` describes the lines that it
//! prints.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::process;
use crate::signals::Signals;

/// The maximum wait for the next line of a client. The slowest client takes minutes to receive a
/// million objects.
const DEADLINE: Duration = Duration::from_secs(900);

/// Interval of checks for an interrupt, such as Ctrl-C, during a wait for a client.
const CHECK: Duration = Duration::from_millis(200);

/// A running client process. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Line>,
}

/// A printed line and the time of its arrival.
#[derive(Debug)]
struct Line {
    text: String,
    time: Instant,
}

impl Client {
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        process::own_group(command).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a client program of the benchmark")?;
        let input = child.stdin.take().context("the client's standard input is no pipe")?;
        let output = child.stdout.take().context("the client's standard output is no pipe")?;
        let (sender, lines) = mpsc::channel();
        // A thread, so that the time of a line does not depend on checks for interrupts.
        std::thread::spawn(move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(Line { text, time: Instant::now() }).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, input, lines })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send_line(&mut self, line: &str) -> anyhow::Result<()> {
        writeln!(self.input, "{line}").context("the client has ended; see its message above")
    }

    /// Waits for the client's next line, which must begin with `word`. Returns the time of the line
    /// and the number after `word`, or 0 if there is no number.
    pub(crate) fn expect(&self, word: &str, signals: &Signals) -> anyhow::Result<(Instant, usize)> {
        let start = Instant::now();
        loop {
            match self.lines.recv_timeout(CHECK) {
                Ok(line) => {
                    let Some(number) = line.text.strip_prefix(word) else {
                        bail!("the client printed `{}` instead of `{word}`", line.text);
                    };
                    return Ok((line.time, number.trim().parse().unwrap_or_default()));
                }
                Err(RecvTimeoutError::Disconnected) => bail!("the client has ended; see its message above"),
                Err(RecvTimeoutError::Timeout) => signals.pause(Duration::ZERO)?,
            }
            if start.elapsed() > DEADLINE {
                bail!("the client did not print `{word}` within {DEADLINE:?}");
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // An error means that the client has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
