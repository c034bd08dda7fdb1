//! The benchmark cases, and the programs that measure them.
//!
//! Many cases are measured twice: by a benchmark program of this workspace ("ours"), and by the Go
//! program `xtask/clientgo`, which measures client-go.

/// A benchmark case: one row of the printed table.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    /// The name of the case in the output of the Go program. `None` if the Go program does not
    /// measure the case.
    pub(crate) client_go: Option<&'static str>,
    /// The name of the case in the output of this workspace's program, or the name of its criterion
    /// benchmark.
    pub(crate) ours: &'static str,
    /// The expected result of this workspace's program, in `unit`. It is a minimum if
    /// [`Unit::more_is_better`], and a maximum for other units.
    pub(crate) goal: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Megabytes,
    /// Events per second.
    Events,
    /// The event rate while one handler is stalled; 100 is the rate while no handler is stalled.
    Percent,
}

impl Unit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Megabytes => "MB",
            Self::Events => "events/s",
            Self::Percent => "%",
        }
    }

    /// Returns the number of nanoseconds in this unit; `None` if the unit does not measure time.
    pub(crate) fn nanoseconds(self) -> Option<f64> {
        match self {
            Self::Nanoseconds => Some(1.0),
            Self::Microseconds => Some(1e3),
            Self::Milliseconds => Some(1e6),
            Self::Megabytes | Self::Events | Self::Percent => None,
        }
    }

    pub(crate) fn more_is_better(self) -> bool {
        matches!(self, Self::Events | Self::Percent)
    }
}

/// A benchmark program of this workspace, and the Go program's arguments for comparable cases.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) package: &'static str,
    pub(crate) bench: &'static str,
    /// Whether the program uses criterion, which has its own arguments and result files.
    pub(crate) is_criterion: bool,
    /// The arguments of the Go program. The program measures each of its cases whose name contains
    /// one of these texts.
    pub(crate) client_go: &'static [&'static str],
}

pub(crate) const PARTS: &[Part] = &[
    Part {
        package: "informer-store",
        bench: "store",
        is_criterion: true,
        client_go: &["get by key", "by_index", "list of", "update,", "replace"],
    },
    Part {
        package: "informer-core",
        bench: "pipeline",
        is_criterion: true,
        client_go: &["DeltaFIFO", "RealFIFO"],
    },
    Part {
        package: "informer-workqueue",
        bench: "workqueue",
        is_criterion: true,
        client_go: &["workqueue,"],
    },
    Part { package: "informer-factory", bench: "informer", is_criterion: false, client_go: &["informer to"] },
    Part {
        package: "informer-factory",
        bench: "stalled",
        is_criterion: false,
        client_go: &["stalled handler"],
    },
];

const fn case(
    title: &'static str,
    unit: Unit,
    client_go: Option<&'static str>,
    ours: &'static str,
    goal: Option<f64>,
) -> Case {
    Case { title, unit, client_go, ours, goal }
}

const NS: Unit = Unit::Nanoseconds;
const US: Unit = Unit::Microseconds;
const MS: Unit = Unit::Milliseconds;
const RATE: Unit = Unit::Events;

const ONE: Option<&str> = Some("informer to 1 handlers");
const TEN: Option<&str> = Some("informer to 10 handlers");
const HUNDRED: Option<&str> = Some("informer to 100 handlers");
const SHALLOW: &str = "queue, add and pop at depth 1";
const WORK: &str = "workqueue, add, get and done at depth 1";
const DEEP: &str = "queue, add and pop at depth 1,000";

#[rustfmt::skip]
pub(crate) const CASES: [Case; 60] = [
    case("get by key, random order", NS, Some("get by key, random"), "get by key", Some(40.0)),
    case("get by key, in order", NS, Some("get by key, sequential"), "get by key, in the order of the list", Some(40.0)),
    case("by_index with 500 results, each visited", US, Some("by_index with 500 results"), "by_index with 500 results, each visited", Some(5.0)),
    case("list of 100,000, iterated", MS, Some("list of 100,000"), "list of 100,000, iterated", Some(0.5)),
    case("list of 100,000, handles copied", MS, Some("list of 100,000"), "list of 100,000, handles copied", None),
    case("update, same index value", US, Some("update, same index value"), "update, index value unchanged", Some(0.6)),
    case("update, other index value", US, Some("update, other index value"), "update, index value changed", Some(0.9)),
    case("replace of 100,000, all changed", MS, Some("replace of 100,000, all changed"), "replace of 100,000/all changed", Some(60.0)),
    case("replace of 100,000, none changed", MS, Some("replace of 100,000, none changed"), "replace of 100,000/none changed", Some(10.0)),
    case("longest stall of a reader in five replaces", MS, Some("longest stall of a reader during a replace"), "longest get while five replaces run, including waits for a core", Some(1.0)),
    case("the same without waits for a core", MS, None, "longest get while five replaces run", Some(1.0)),
    case("the same without a writer, with waits for a core", MS, None, "longest get while nothing else runs, including waits for a core", None),
    case("the same while a thread computes", MS, None, "longest get while a thread computes, including waits for a core", None),
    case("queue, add and pop at depth 1; `DeltaFIFO`", NS, Some("DeltaFIFO, add and pop at depth 1"), SHALLOW, Some(150.0)),
    case("queue, add and pop at depth 1; `RealFIFO`", NS, Some("RealFIFO, add and pop at depth 1"), SHALLOW, Some(150.0)),
    case("queue, add and pop at depth 1,000; `DeltaFIFO`", NS, Some("DeltaFIFO, add and pop at depth 1,000"), DEEP, Some(150.0)),
    case("queue, add and pop at depth 1,000; `RealFIFO`", NS, Some("RealFIFO, add and pop at depth 1,000"), DEEP, Some(150.0)),
    case("queue, 1,000 adds and one batch, per add", NS, Some("RealFIFO, batches of 1,000, per add"), "queue, add of 1,000 and one pop_batch, per add", None),
    case("work queue, add, get and done at depth 1", NS, Some("workqueue, add, get and done at depth 1"), WORK, Some(135.0)),
    case("the same, with client-go's `Forget`", NS, Some("workqueue, add, get, forget and done"), WORK, None),
    case("work queue, add, get and done at depth 1,000", NS, Some("workqueue, add, get and done at depth 1,000"), "workqueue, add, get and done at depth 1,000", Some(180.0)),
    case("work queue, from one thread to another, per key", NS, Some("workqueue, add on one goroutine, get and done on another"), "workqueue, add on one thread, get and done on another", Some(175.0)),
    case("a plain queue at depth 1", NS, None, "plain queue, add, get and done at depth 1", None),
    case("a plain queue at depth 1,000", NS, None, "plain queue, add, get and done at depth 1,000", None),
    case("a plain queue, from one thread to another, per key", NS, None, "plain queue, add on one thread, get and done on another", None),
    case("work queue, add of a key that is queued", NS, None, "workqueue, add of a key that is queued", None),
    case("work queue, add, get and done, with metrics", NS, None, "workqueue, add, get and done, with metrics", None),
    case("… with 1,000 delayed keys", NS, None, "workqueue, add, get and done, with 1,000 delayed keys", None),
    case("… with 50 groups, at depth 1,000", NS, None, "workqueue, add, get and done, 50 groups, depth 1,000", None),
    case("… with two priorities, at depth 1,000", NS, None, "workqueue, add, get and done, two priorities, depth 1,000", None),
    case("work queue, add, add with a higher priority, get and done", NS, None, "workqueue, add, add with a higher priority, get and done", None),
    case("work queue, add with a delay, get and done", NS, None, "workqueue, add with a delay, get and done", None),
    case("work queue, add, get, retry, get and done", NS, None, "workqueue, add, get, retry, get and done", None),
    case("informer to 1 handler, one event at a time", RATE, ONE, "informer to 1 handlers, batches of 1", Some(2e6)),
    case("informer to 1 handler, 100 at a time", RATE, ONE, "informer to 1 handlers, batches of 100", Some(2e6)),
    case("informer to 1 handler, 1,000 at a time", RATE, ONE, "informer to 1 handlers, batches of 1000", Some(2e6)),
    case("informer to 1 handler, up to date", RATE, ONE, "informer to 1 handlers, up to date", None),
    case("the same with slim views, one event at a time", RATE, None, "informer of slim views to 1 handlers, batches of 1", Some(2e6)),
    case("the same with slim views, 100 at a time", RATE, None, "informer of slim views to 1 handlers, batches of 100", Some(2e6)),
    case("the same with slim views, 1,000 at a time", RATE, None, "informer of slim views to 1 handlers, batches of 1000", Some(2e6)),
    case("informer to 10 handlers, one event at a time", RATE, TEN, "informer to 10 handlers, batches of 1", Some(1.5e6)),
    case("informer to 10 handlers, 100 at a time", RATE, TEN, "informer to 10 handlers, batches of 100", Some(1.5e6)),
    case("informer to 10 handlers, 1,000 at a time", RATE, TEN, "informer to 10 handlers, batches of 1000", Some(1.5e6)),
    case("informer to 10 handlers, up to date", RATE, TEN, "informer to 10 handlers, up to date", None),
    case("the same with slim views, one event at a time", RATE, None, "informer of slim views to 10 handlers, batches of 1", Some(1.5e6)),
    case("the same with slim views, 100 at a time", RATE, None, "informer of slim views to 10 handlers, batches of 100", Some(1.5e6)),
    case("the same with slim views, 1,000 at a time", RATE, None, "informer of slim views to 10 handlers, batches of 1000", Some(1.5e6)),
    case("informer to 100 handlers, one event at a time", RATE, HUNDRED, "informer to 100 handlers, batches of 1", Some(2e5)),
    case("informer to 100 handlers, 100 at a time", RATE, HUNDRED, "informer to 100 handlers, batches of 100", Some(2e5)),
    case("informer to 100 handlers, 1,000 at a time", RATE, HUNDRED, "informer to 100 handlers, batches of 1000", Some(2e5)),
    case("informer to 100 handlers, up to date", RATE, HUNDRED, "informer to 100 handlers, up to date", None),
    case("the same with slim views, one event at a time", RATE, None, "informer of slim views to 100 handlers, batches of 1", Some(2e5)),
    case("the same with slim views, 100 at a time", RATE, None, "informer of slim views to 100 handlers, batches of 100", Some(2e5)),
    case("the same with slim views, 1,000 at a time", RATE, None, "informer of slim views to 100 handlers, batches of 1000", Some(2e5)),
    case("one stalled handler among ten: memory", Unit::Megabytes, Some("stalled handler, memory"), "stalled handler, memory", None),
    case("the same: speed of the nine others", Unit::Percent, Some("stalled handler, speed of the nine others"), "stalled handler, speed of the nine others", None),
    case("the same with slim views: memory", Unit::Megabytes, None, "stalled handler of slim views, memory", None),
    case("the stalled handler drops old states: memory", Unit::Megabytes, Some("stalled handler, memory"), "stalled handler that drops old states, memory", Some(3.0)),
    case("the same: speed of the nine others", Unit::Percent, Some("stalled handler, speed of the nine others"), "stalled handler that drops old states, speed of the nine others", None),
    case("the same with slim views: memory", Unit::Megabytes, None, "stalled handler of slim views that drops old states, memory", Some(3.0)),
];
