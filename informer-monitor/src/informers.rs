//! [`InformerMetrics`]: the metrics of a factory's informers.

use std::collections::BTreeMap;
use std::fmt;

use informer_core::HandlerStats;
use informer_factory::{InformerReport, SharedInformerFactory};
use informer_reflector::{Health, ReflectorCounts};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::{counter, gauge};

/// The metrics of the informers of a factory, for
/// [`Registry::register_collector`](prometheus_client::registry::Registry::register_collector).
///
/// Each series has the labels `resource`, such as `deployments.apps in namespace "shop"`, and
/// `object`, the name of the object type, such as `Deployment`. The series of an informer end when the factory stops the
/// informer.
///
/// | metric | type | additional labels |
/// |---|---|---|
/// | `informer_synced` | gauge, 0 or 1 | |
/// | `informer_health` | gauge, always 1 | `state`, such as `live` or `forbidden` |
/// | `informer_last_event_age_seconds` | gauge, while the informer is live | |
/// | `informer_store_objects` | gauge | |
/// | `informer_store_resource_version` | gauge, the last 15 digits | |
/// | `informer_queued_items` | gauge | |
/// | `informer_quarantined_objects` | gauge | |
/// | `informer_quarantined_versions_total` | counter | |
/// | `informer_handler_pending_events` | gauge | `handler` |
/// | `informer_handler_delivered_events_total` | counter | `handler` |
/// | `informer_handler_coalesced_events_total` | counter | `handler` |
/// | `informer_handler_panics_total` | counter | `handler` |
/// | `informer_handler_busy_seconds_total` | counter | `handler` |
/// | `informer_handler_longest_call_seconds` | gauge | `handler` |
/// | `reflector_lists_total` | counter | |
/// | `reflector_list_pages_total` | counter | |
/// | `reflector_listed_objects_total` | counter | |
/// | `reflector_watches_total` | counter | |
/// | `reflector_watch_events_total` | counter | `type` |
/// | `reflector_failures_total` | counter | `cause`, see [`ReflectorCounts::failures`] |
///
/// client-go: `informer_monitor.go` and `reflector_metrics.go` of tools/cache.
#[derive(Debug)]
pub struct InformerMetrics {
    factory: SharedInformerFactory,
}

impl InformerMetrics {
    /// Returns the metrics of a factory's informers, including those that are requested later. The
    /// metrics keep the factory.
    #[must_use]
    pub fn new(factory: &SharedInformerFactory) -> Self {
        Self { factory: factory.clone() }
    }
}

/// An informer at the time of a request.
struct Informer {
    report: InformerReport,
    counts: ReflectorCounts,
    /// The handlers by name. The statistics of handlers with the same name are added.
    handlers: BTreeMap<String, HandlerStats>,
}

type Labels<'a> = Vec<(&'a str, &'a str)>;
type Number<T> = fn(&T) -> f64;
type MaybeNumber<T> = fn(&T) -> Option<f64>;
type Numbers<T> = fn(&T) -> Vec<(&'static str, f64)>;

const INFORMER_GAUGES: [(&str, &str, MaybeNumber<Informer>); 6] = [
    ("informer_synced", "Whether the initial list is in the store", |it| {
        Some(f64::from(u8::from(it.report.has_synced)))
    }),
    ("informer_last_event_age_seconds", "Time since the last event or bookmark", |it| {
        match it.report.health {
            Health::Live { last_event } => Some(last_event.elapsed().as_secs_f64()),
            _ => None,
        }
    }),
    ("informer_store_objects", "Number of objects in the store", |it| Some(it.report.objects as f64)),
    ("informer_store_resource_version", "Last 15 digits of the store's resource version", |it| {
        last_digits(&it.report.watermark.to_string())
    }),
    ("informer_queued_items", "Number of objects with queued changes", |it| Some(it.report.queued as f64)),
    ("informer_quarantined_objects", "Number of objects that can't be decoded or transformed", |it| {
        Some(it.report.status.quarantined().len() as f64)
    }),
];

const INFORMER_COUNTERS: [(&str, &str, Number<Informer>); 5] = [
    (
        "informer_quarantined_versions",
        "Number of object versions that could not be decoded or transformed",
        |it| it.report.status.quarantined_total() as f64,
    ),
    ("reflector_lists", "Number of complete lists", |it| it.counts.lists as f64),
    ("reflector_list_pages", "Number of pages of lists", |it| it.counts.pages as f64),
    ("reflector_listed_objects", "Number of objects in complete lists", |it| it.counts.listed_objects as f64),
    ("reflector_watches", "Number of opened watches", |it| it.counts.watches as f64),
];

/// Counters with one more label, whose name is the first element.
const LABELLED_COUNTERS: [(&str, &str, &str, Numbers<Informer>); 2] = [
    ("type", "reflector_watch_events", "Number of events of watches", |it| {
        let events = &it.counts.events;
        vec![
            ("ADDED", events.added as f64),
            ("MODIFIED", events.modified as f64),
            ("DELETED", events.deleted as f64),
            ("BOOKMARK", events.bookmarks as f64),
            ("other", events.other as f64),
        ]
    }),
    ("cause", "reflector_failures", "Number of failed requests and interrupted watches", |it| {
        it.counts.failures.iter().map(|(cause, count)| (*cause, *count as f64)).collect()
    }),
];

const HANDLER_GAUGES: [(&str, &str, Number<HandlerStats>); 2] = [
    ("informer_handler_pending_events", "Number of events that wait for the handler", |it| it.pending as f64),
    ("informer_handler_longest_call_seconds", "Duration of the longest call of the handler", |it| {
        it.slowest.as_secs_f64()
    }),
];

const HANDLER_COUNTERS: [(&str, &str, Number<HandlerStats>); 4] = [
    ("informer_handler_delivered_events", "Number of calls that have returned", |it| it.delivered as f64),
    ("informer_handler_coalesced_events", "Number of events that were merged into earlier ones", |it| {
        it.coalesced as f64
    }),
    ("informer_handler_panics", "Number of calls that have panicked", |it| it.panicked as f64),
    ("informer_handler_busy_seconds", "Duration of all calls of the handler", |it| it.busy.as_secs_f64()),
];

impl Informer {
    fn new(report: InformerReport) -> Self {
        let mut handlers = BTreeMap::<String, HandlerStats>::new();
        for (name, stats) in &report.handlers {
            let sum = handlers.entry(name.clone()).or_default();
            sum.pending += stats.pending;
            sum.delivered += stats.delivered;
            sum.coalesced += stats.coalesced;
            sum.panicked += stats.panicked;
            sum.busy += stats.busy;
            sum.slowest = sum.slowest.max(stats.slowest);
        }
        Self { counts: report.status.counts(), report, handlers }
    }

    fn labels(&self) -> Labels<'_> {
        vec![("resource", &self.report.description), ("object", short(self.report.object))]
    }

    fn labels_with<'a>(&'a self, name: &'a str, value: &'a str) -> Labels<'a> {
        let mut labels = self.labels();
        labels.push((name, value));
        labels
    }
}

impl Collector for InformerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let informers: Vec<_> = self.factory.informers().into_iter().map(Informer::new).collect();
        let encoder = &mut encoder;
        for (name, help, value) in INFORMER_GAUGES {
            let samples = informers.iter().filter_map(|it| Some((it.labels(), value(it)?)));
            gauge(encoder, name, help, samples)?;
        }
        let healths = informers.iter().map(|it| (it.labels_with("state", it.report.health.name()), 1.0));
        gauge(encoder, "informer_health", "The state of listing and watching", healths)?;
        for (name, help, value) in INFORMER_COUNTERS {
            counter(encoder, name, help, informers.iter().map(|it| (it.labels(), value(it))))?;
        }
        for (label, name, help, values) in LABELLED_COUNTERS {
            let of = |it| {
                values(it)
                    .into_iter()
                    .map(move |(text, number)| (Informer::labels_with(it, label, text), number))
            };
            counter(encoder, name, help, informers.iter().flat_map(of))?;
        }
        let handlers = || {
            let all = informers.iter().flat_map(|it| it.handlers.iter().map(move |handler| (it, handler)));
            all.map(|(it, (name, stats))| (it.labels_with("handler", name), stats))
        };
        for (name, help, value) in HANDLER_GAUGES {
            gauge(encoder, name, help, handlers().map(|(labels, stats)| (labels, value(stats))))?;
        }
        for (name, help, value) in HANDLER_COUNTERS {
            counter(encoder, name, help, handlers().map(|(labels, stats)| (labels, value(stats))))?;
        }
        Ok(())
    }
}

/// Returns the name of a type without its path and its parameters: the path contains the version of
/// Kubernetes, and would begin new series after an update.
fn short(type_name: &str) -> &str {
    let name = type_name.split('<').next().unwrap_or(type_name);
    name.rsplit("::").next().unwrap_or(name)
}

/// Returns the last 15 digits of a resource version, because a float has no more; `None` if the
/// version is not a number.
fn last_digits(resource_version: &str) -> Option<f64> {
    let start = resource_version.len().saturating_sub(15);
    resource_version.get(start..)?.parse::<u64>().ok().map(|number| number as f64)
}
