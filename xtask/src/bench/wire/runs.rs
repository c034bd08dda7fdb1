//! [`Run`]: starts a client process, and measures its time, CPU time and memory. The client first
//! syncs. In some measurements, it then receives events.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::client::Client;
use super::forms::Form;
use super::latency;
use super::objects::Objects;
use super::replay::Server;
use super::usage::{Usage, reset_peak, warm_memory};
use crate::signals::Signals;

/// The pause after the sync and after events, in which the client frees memory.
const SETTLE: Duration = Duration::from_secs(1);

/// The send rates for measuring latency, in events per second, each with a divisor. A rate ends
/// when the number of sent events is the number of all events divided by the divisor. So the first
/// fifth of all events has the rate 1,000, and the rest has the rate 5,000.
const RATES: [(u32, usize); 2] = [(1_000, 5), (5_000, 1)];

const SYNC_PEAK: &str = "sync.peak";

/// Measured values with their names, such as `sync.cpu`.
pub(crate) type Figures = Vec<(String, f64)>;

/// The inputs for measuring one client. The methods start a server and the client, and measure the
/// client.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) form: &'a Form,
    pub(crate) objects: Objects,
    pub(crate) handlers: usize,
    /// Whether the client lists and then watches, instead of requesting a streaming list.
    pub(crate) is_list: bool,
    /// The resource version of the first event in the last pass. In each pass, the server updates
    /// every object once. An object with at least this version is in its final state.
    pub(crate) last_pass: u64,
    /// The resource version of each event.
    pub(crate) versions: &'a [u64],
    pub(crate) signals: &'a Signals,
}

/// A client that has synced.
struct Synced {
    // Ends before its server, because a client without a server prints errors.
    client: Client,
    server: Server,
    figures: Figures,
}

impl Run<'_> {
    /// Measures the client during its initial sync, and then while the server sends all events at
    /// full speed.
    pub(crate) fn throughput(&self, command: Command) -> anyhow::Result<Figures> {
        let Synced { server, client, mut figures } = self.sync(command, &[])?;
        reset_peak(client.id())?;
        let (before, events) = (Usage::of(client.id())?, self.objects.events());
        let start = Instant::now();
        server.send(0..events, None)?;
        let (end, received) = client.expect("done", self.signals)?;
        self.signals.pause(SETTLE)?;
        let after = Usage::of(client.id())?;
        let handlers = self.handlers;
        let mut add = |name: &str, value| figures.push((format!("events.{handlers}.{name}"), value));
        add("rate", events as f64 / (end - start).as_secs_f64());
        add("cpu", (after.cpu - before.cpu).as_secs_f64() / events as f64);
        add("peak", after.peak);
        add("received", received as f64 / (events * handlers) as f64);
        Ok(figures)
    }

    /// Measures only the initial sync. Returns all measured values, with `prefix` before each name.
    /// The second result is one of these values again: the client's peak memory, in bytes.
    pub(crate) fn sync_only(&self, command: Command, prefix: &str) -> anyhow::Result<(Figures, f64)> {
        let figures = self.sync(command, &[])?.figures;
        let peak = figures.iter().find(|(name, _)| name == SYNC_PEAK).map_or(0.0, |(_, peak)| *peak);
        let with_prefix = |(name, value): (String, f64)| (format!("{prefix}.{name}"), value);
        Ok((figures.into_iter().map(with_prefix).collect(), peak))
    }

    /// Measures the time that events take from the server to the client's handler. The time starts
    /// when the server sends the event to the client or, if the server is late, when it is due.
    pub(crate) fn latency(&self, command: Command) -> anyhow::Result<Figures> {
        let file = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
        let Synced { server, client, .. } = self.sync(command, &[file.path().as_os_str()])?;
        let (mut first, mut figures) = (0, Figures::new());
        let events = self.objects.events();
        let mut sent = Vec::with_capacity(events);
        for (rate, divisor) in RATES {
            // With the divisor 5, the rate ends after a fifth of all events.
            let range = first..events / divisor;
            first = range.end;
            server.send(range.clone(), Some(rate))?;
            let times = server.sent(self.signals)?;
            sent.push((rate, latency::by_version(&self.versions[range], &times)));
            // The next rate begins without a backlog, unless the client is slower.
            self.signals.pause(SETTLE)?;
        }
        client.expect("done", self.signals)?;
        let received = latency::read(file.path())?;
        for (rate, sent) in sent {
            figures.extend(latency::figures(rate, &sent, &received)?);
        }
        Ok(figures)
    }

    fn sync(&self, mut command: Command, further: &[&std::ffi::OsStr]) -> anyhow::Result<Synced> {
        let server = Server::start(self.objects.clone())?;
        command
            .arg(server.url())
            .args([self.form.argument, if self.is_list { "list" } else { "streaming" }])
            .args([self.objects.len(), self.handlers].map(|number| number.to_string()))
            .arg(self.last_pass.to_string())
            .args(further);
        let mut client = Client::start(&mut command)?;
        client.expect("ready", self.signals)?;
        warm_memory()?;
        let (start, before) = (Instant::now(), Usage::of(client.id())?);
        client.send_line("start")?;
        let (end, count) = client.expect("synced", self.signals)?;
        if count != self.objects.len() {
            bail!("the client has {count} objects instead of {}", self.objects.len());
        }
        self.signals.pause(SETTLE)?;
        let usage = Usage::of(client.id())?;
        let objects = count as f64;
        let mut figures = vec![
            ("sync.time".to_owned(), (end - start).as_secs_f64()),
            ("sync.cpu".to_owned(), (usage.cpu - before.cpu).as_secs_f64()),
            (SYNC_PEAK.to_owned(), usage.peak),
            ("steady".to_owned(), (usage.resident - before.resident) / objects),
        ];
        if self.form.program.collects_garbage() {
            client.send_line("collect")?;
            client.expect("collected", self.signals)?;
            let resident = Usage::of(client.id())?.resident;
            figures.push(("steady.collected".to_owned(), (resident - before.resident) / objects));
        }
        Ok(Synced { client, server, figures })
    }
}
