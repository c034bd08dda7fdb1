//! [`Part`]: the measurements of the clients, each with its table columns and charts. A measurement
//! gives several values, each with a name such as `sync.cpu`. A value is called a figure.

use clap::ValueEnum;

/// A measurement that compares the clients. The option `--part` selects measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Time, CPU time and memory of the initial sync, and of events that the server sends at full
    /// speed
    Throughput,
    /// Time, CPU time and memory of the initial sync with a list request instead of a streaming
    /// list
    Lists,
    /// Time, CPU time and memory of events that the server sends at full speed, for clients with 1,
    /// 10 and 100 handlers
    Handlers,
    /// The time from the server's write of an event to the handler's call, at fixed event rates
    Latency,
    /// CPU time and memory of the initial sync of 1,000 to 1,000,000 objects
    Growth,
}

/// The numbers of handlers in [`Part::Handlers`].
pub(crate) const HANDLERS: [usize; 3] = [1, 10, 100];

/// The numbers of objects in [`Part::Growth`].
pub(crate) const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

/// A unit in the tables. `factor` converts a measured value, such as seconds or bytes, to this
/// unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: f64,
}

const SECONDS: Unit = Unit { name: "s", factor: 1.0 };
const MILLISECONDS: Unit = Unit { name: "ms", factor: 1e3 };
const MICROSECONDS: Unit = Unit { name: "µs", factor: 1e6 };
const MEGABYTES: Unit = Unit { name: "MB", factor: 1e-6 };
const KILOBYTES: Unit = Unit { name: "KB", factor: 1e-3 };
const PER_SECOND: Unit = Unit { name: "/s", factor: 1.0 };
const PERCENT: Unit = Unit { name: "%", factor: 100.0 };

/// A column of a table. `figure` is the name of the measured value in the column, such as
/// `sync.cpu`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) figure: &'static str,
    pub(crate) unit: Unit,
}

const fn column(title: &'static str, figure: &'static str, unit: Unit) -> Column {
    Column { title, figure, unit }
}

/// A chart with one bar or one line for each client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chart {
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    /// The names of the measured values, such as `sync.cpu`. A bar chart has one name. A line chart
    /// has one for each of [`SIZES`].
    pub(crate) figures: &'static [&'static str],
}

impl Part {
    pub(crate) const ALL: [Self; 5] =
        [Self::Throughput, Self::Lists, Self::Handlers, Self::Latency, Self::Growth];

    /// Returns the name in file names and in the markers of docs/benchmarks.md.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Lists => "lists",
            Self::Handlers => "handlers",
            Self::Latency => "latency",
            Self::Growth => "growth",
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Throughput => &THROUGHPUT,
            Self::Lists => &LISTS,
            Self::Handlers => &TO_HANDLERS,
            Self::Latency => &LATENCY,
            Self::Growth => &GROWTH,
        }
    }

    pub(crate) fn charts(self) -> &'static [Chart] {
        match self {
            Self::Throughput => &THROUGHPUT_CHARTS,
            Self::Lists | Self::Handlers => &[],
            Self::Latency => &LATENCY_CHARTS,
            Self::Growth => &GROWTH_CHARTS,
        }
    }
}

const THROUGHPUT: [Column; 9] = [
    column("sync, CPU", "sync.cpu", SECONDS),
    column("sync, time", "sync.time", SECONDS),
    column("sync, peak memory", "sync.peak", MEGABYTES),
    column("steady memory per pod", "steady", KILOBYTES),
    column("after a collection", "steady.collected", KILOBYTES),
    column("events", "events.1.rate", PER_SECOND),
    column("CPU per event", "events.1.cpu", MICROSECONDS),
    column("peak memory with events", "events.1.peak", MEGABYTES),
    column("events that reach the handler", "events.1.received", PERCENT),
];

const LISTS: [Column; 3] = [
    column("sync, CPU", "list.sync.cpu", SECONDS),
    column("sync, time", "list.sync.time", SECONDS),
    column("sync, peak memory", "list.sync.peak", MEGABYTES),
];

const TO_HANDLERS: [Column; 9] = [
    column("1 handler: events", "events.1.rate", PER_SECOND),
    column("CPU per event", "events.1.cpu", MICROSECONDS),
    column("peak memory", "events.1.peak", MEGABYTES),
    column("10 handlers: events", "events.10.rate", PER_SECOND),
    column("CPU per event", "events.10.cpu", MICROSECONDS),
    column("peak memory", "events.10.peak", MEGABYTES),
    column("100 handlers: events", "events.100.rate", PER_SECOND),
    column("CPU per event", "events.100.cpu", MICROSECONDS),
    column("peak memory", "events.100.peak", MEGABYTES),
];

const LATENCY: [Column; 8] = [
    column("1,000 events/s: p50", "latency.1000.p50", MILLISECONDS),
    column("p99", "latency.1000.p99", MILLISECONDS),
    column("p99.9", "latency.1000.p99.9", MILLISECONDS),
    column("received", "latency.1000.received", PERCENT),
    column("5,000 events/s: p50", "latency.5000.p50", MILLISECONDS),
    column("p99", "latency.5000.p99", MILLISECONDS),
    column("p99.9", "latency.5000.p99.9", MILLISECONDS),
    column("received", "latency.5000.received", PERCENT),
];

const GROWTH: [Column; 10] = [
    column("1,000 pods: sync, CPU", "1000.sync.cpu", SECONDS),
    column("peak memory", "1000.sync.peak", MEGABYTES),
    column("10,000: CPU", "10000.sync.cpu", SECONDS),
    column("peak", "10000.sync.peak", MEGABYTES),
    column("100,000: CPU", "100000.sync.cpu", SECONDS),
    column("peak", "100000.sync.peak", MEGABYTES),
    column("steady memory per pod", "100000.steady", KILOBYTES),
    column("1,000,000: CPU", "1000000.sync.cpu", SECONDS),
    column("peak", "1000000.sync.peak", MEGABYTES),
    column("steady memory per pod", "1000000.steady", KILOBYTES),
];

const THROUGHPUT_CHARTS: [Chart; 3] = [
    Chart {
        file: "sync-cpu.svg",
        title: "CPU time of the sync, in s",
        unit: SECONDS,
        figures: &["sync.cpu"],
    },
    Chart {
        file: "memory.svg",
        title: "Steady memory per pod, in KB",
        unit: KILOBYTES,
        figures: &["steady"],
    },
    Chart {
        file: "event-cpu.svg",
        title: "CPU time per event, in µs",
        unit: MICROSECONDS,
        figures: &["events.1.cpu"],
    },
];

const LATENCY_CHARTS: [Chart; 1] = [Chart {
    file: "latency.svg",
    title: "99th percentile of the latency at 1,000 events/s, in ms",
    unit: MILLISECONDS,
    figures: &["latency.1000.p99"],
}];

const GROWTH_CHARTS: [Chart; 2] = [
    Chart {
        file: "growth-memory.svg",
        title: "Peak memory of the sync, in MB",
        unit: MEGABYTES,
        figures: &["1000.sync.peak", "10000.sync.peak", "100000.sync.peak", "1000000.sync.peak"],
    },
    Chart {
        file: "growth-cpu.svg",
        title: "CPU time of the sync, in s",
        unit: SECONDS,
        figures: &["1000.sync.cpu", "10000.sync.cpu", "100000.sync.cpu", "1000000.sync.cpu"],
    },
];
