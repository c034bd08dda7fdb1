//! [`InformerMetrics`]: the metrics of a factory's informers.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use informer_core::HandlerStats;
use informer_factory::SharedInformerFactory;
use informer_factory::status::InformerReport;
use informer_reflector::{Health, ReflectorCounts};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType::{self, Counter, Gauge};

use crate::{short, write};

/// The metrics of the informers of a factory, for
/// [`Registry::register_collector`](prometheus_client::registry::Registry::register_collector).
///
/// Each series has the labels `resource`, such as `deployments.apps in namespace "shop"`, and
/// `object`, the name of the object type, such as `Deployment`. If several informers have the same
/// resource and the same name of the object type, `object` also has a number for all but the oldest
/// of them, such as `PodView 2`. The series of an informer end when the factory removes the
/// informer: in [`stop`](SharedInformerFactory::stop), because the informer was unused, or when the
/// program requests the informer again after its task has panicked or was dropped. After a shutdown
/// of the factory or a panic, the series continue until then, except those of handlers.
///
/// Handlers with the same name share their series, which end when the last of these handlers is
/// removed or the informer stops.
///
/// | metric | type | additional labels |
/// |---|---|---|
/// | `informer_synced` | gauge, 0 or 1 | |
/// | `informer_health` | gauge, always 1 | `state`, such as `live` or `forbidden` |
/// | `informer_last_event_age_seconds` | gauge, while the informer is live | |
/// | `informer_store_objects` | gauge | |
/// | `informer_store_encoded_bytes` | gauge, if objects are stored encoded | |
/// | `informer_store_resource_version` | gauge, the last 15 digits | |
/// | `informer_watermark_age_seconds` | gauge, once the store has a watermark | |
/// | `informer_queued_items` | gauge | |
/// | `informer_batches_total` | counter | |
/// | `informer_batched_items_total` | counter | |
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
/// | `reflector_relists_total` | counter | `cause`, see [`ReflectorCounts::relists`] |
/// | `reflector_received_bytes_total` | counter | |
/// | `reflector_watches_total` | counter | |
/// | `reflector_watch_events_total` | counter | `type` |
/// | `reflector_failures_total` | counter | `cause`, see [`ReflectorCounts::failures`] |
///
/// A `# HELP` line in the response describes each metric. The watermark is the resource version
/// that the store has reached. `informer_watermark_age_seconds` is the time since the watermark was
/// last set, see [`InformerReport::watermark_age`]. `informer_store_resource_version` has only the
/// last 15 digits of this version, because an `f64` represents only 15 digits exactly.
///
/// client-go: `informer_metrics.go` and `reflector_metrics.go` of tools/cache.
#[derive(Debug)]
pub struct InformerMetrics {
    factory: SharedInformerFactory,
}

impl InformerMetrics {
    /// Returns the metrics of all informers of a factory, including informers that are requested
    /// later.
    ///
    /// The metrics contain a handle of the factory. So dropping all other handles does not stop the
    /// factory's informers.
    #[must_use]
    pub fn new(factory: &SharedInformerFactory) -> Self {
        Self { factory: factory.clone() }
    }
}

/// The state of an informer at the time of a request for the metrics.
struct Informer {
    report: InformerReport,
    /// The label `object`: the name of the object type, such as `PodView`. The next informer with
    /// the same labels has `PodView 2`.
    object: String,
    counts: ReflectorCounts,
    /// The statistics of the handlers, by name. Handlers with the same name share an entry, which
    /// includes removed handlers.
    handlers: BTreeMap<String, HandlerStats>,
}

type Labels<'a> = Vec<(&'a str, &'a str)>;
/// Returns the current value of a metric; `None` if the metric has no value now.
type Number<T> = fn(&T) -> Option<f64>;
type Numbers = fn(&Informer) -> Vec<(&'static str, f64)>;

const OF_INFORMER: [(MetricType, &str, &str, Number<Informer>); 16] = [
    (Gauge, "informer_synced", "Whether the initial list is in the store", |it| {
        Some(f64::from(u8::from(it.report.has_synced)))
    }),
    (Gauge, "informer_last_event_age_seconds", "Time since the last event, bookmark or list", |it| match it
        .report
        .health
    {
        Health::Live { last_event } => Some(last_event.elapsed().as_secs_f64()),
        _ => None,
    }),
    (Gauge, "informer_store_objects", "Number of objects in the store", |it| Some(it.report.objects as f64)),
    (Gauge, "informer_store_encoded_bytes", "Number of bytes of the encoded objects in the store", |it| {
        it.report.encoded_bytes.map(|bytes| bytes as f64)
    }),
    (Gauge, "informer_store_resource_version", "Last 15 digits of the store's resource version", |it| {
        last_digits(&it.report.watermark.to_string())
    }),
    (Gauge, "informer_watermark_age_seconds", "Time since the store reached its resource version", |it| {
        it.report.watermark_age.map(|age| age.as_secs_f64())
    }),
    (Counter, "informer_batches", "Number of batches of changes that the store has applied", |it| {
        Some(it.report.batches.batches as f64)
    }),
    (Counter, "informer_batched_items", "Number of changed objects in all batches", |it| {
        Some(it.report.batches.items as f64)
    }),
    (Gauge, "informer_queued_items", "Number of objects with queued changes", |it| {
        Some(it.report.queued as f64)
    }),
    (Gauge, "informer_quarantined_objects", "Number of objects that can't be decoded or transformed", |it| {
        Some(it.report.status.quarantined().len() as f64)
    }),
    (
        Counter,
        "informer_quarantined_versions",
        "Number of object versions that could not be decoded or transformed",
        |it| Some(it.report.status.quarantined_total() as f64),
    ),
    (Counter, "reflector_lists", "Number of complete lists", |it| Some(it.counts.lists as f64)),
    (Counter, "reflector_list_pages", "Number of pages of lists", |it| Some(it.counts.pages as f64)),
    (Counter, "reflector_listed_objects", "Number of objects in complete lists", |it| {
        Some(it.counts.listed_objects as f64)
    }),
    (Counter, "reflector_received_bytes", "Number of bytes in the bodies of lists and watches", |it| {
        Some(it.counts.received_bytes as f64)
    }),
    (Counter, "reflector_watches", "Number of opened watches", |it| Some(it.counts.watches as f64)),
];

/// The metrics with an additional label. Each tuple has the label's name, then the metric's kind,
/// name, help text, and a function that returns a number per label value.
const LABELLED: [(&str, MetricType, &str, &str, Numbers); 4] = [
    ("state", Gauge, "informer_health", "The state of listing and watching", |it| {
        vec![(it.report.health.name(), 1.0)]
    }),
    ("type", Counter, "reflector_watch_events", "Number of events of watches", |it| {
        let events = &it.counts.events;
        vec![
            ("ADDED", events.added as f64),
            ("MODIFIED", events.modified as f64),
            ("DELETED", events.deleted as f64),
            ("BOOKMARK", events.bookmarks as f64),
            ("other", events.other as f64),
        ]
    }),
    ("cause", Counter, "reflector_failures", "Number of failed requests and interrupted watches", |it| {
        by_cause(&it.counts.failures)
    }),
    ("cause", Counter, "reflector_relists", "Number of lists after the first one", |it| {
        by_cause(&it.counts.relists)
    }),
];

const OF_HANDLER: [(MetricType, &str, &str, Number<HandlerStats>); 6] = [
    (Gauge, "informer_handler_pending_events", "Number of events that wait for the handler", |it| {
        Some(it.pending as f64)
    }),
    (Gauge, "informer_handler_longest_call_seconds", "Duration of the longest call of the handler", |it| {
        Some(it.slowest.as_secs_f64())
    }),
    (Counter, "informer_handler_delivered_events", "Number of calls that have returned", |it| {
        Some(it.delivered as f64)
    }),
    (Counter, "informer_handler_coalesced_events", "Number of events merged into earlier ones", |it| {
        Some(it.coalesced as f64)
    }),
    (Counter, "informer_handler_panics", "Number of calls that have panicked", |it| Some(it.panicked as f64)),
    (Counter, "informer_handler_busy_seconds", "Duration of all calls of the handler", |it| {
        Some(it.busy.as_secs_f64())
    }),
];

fn by_cause(counts: &BTreeMap<&'static str, u64>) -> Vec<(&'static str, f64)> {
    counts.iter().map(|(cause, count)| (*cause, *count as f64)).collect()
}

impl Informer {
    fn all(factory: &SharedInformerFactory) -> Vec<Self> {
        let mut seen = HashMap::<(String, &str), usize>::new();
        let reports = factory.informers().into_iter();
        let informers = reports.map(|report| {
            let name = short(report.object);
            let count = seen.entry((report.description.clone(), name)).or_default();
            *count += 1;
            let object = if *count == 1 { name.to_owned() } else { format!("{name} {count}") };
            Self::new(report, object)
        });
        informers.collect()
    }

    fn new(report: InformerReport, object: String) -> Self {
        // A counter must not decrease, so the sums include removed handlers.
        let mut handlers = report.removed_handlers.clone();
        for (name, stats) in &report.handlers {
            let sum = handlers.entry(name.clone()).or_default();
            *sum = sum.plus(stats);
        }
        Self { counts: report.status.counts(), report, object, handlers }
    }

    fn labels(&self) -> Labels<'_> {
        vec![("resource", &self.report.description), ("object", self.object.as_str())]
    }

    fn labels_with<'a>(&'a self, name: &'a str, value: &'a str) -> Labels<'a> {
        let mut labels = self.labels();
        labels.push((name, value));
        labels
    }
}

impl Collector for InformerMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let informers = Informer::all(&self.factory);
        for (kind, name, help, value) in OF_INFORMER {
            let samples = informers.iter().filter_map(|it| Some((it.labels(), value(it)?)));
            write(&mut encoder, kind, name, help, samples)?;
        }
        for (label, kind, name, help, values) in LABELLED {
            let samples = informers.iter().flat_map(|it| {
                values(it).into_iter().map(move |(text, number)| (it.labels_with(label, text), number))
            });
            write(&mut encoder, kind, name, help, samples)?;
        }
        for (kind, name, help, value) in OF_HANDLER {
            let handlers =
                informers.iter().flat_map(|it| it.handlers.iter().map(move |handler| (it, handler)));
            let samples = handlers.filter_map(|(it, (handler, stats))| {
                Some((it.labels_with("handler", handler), value(stats)?))
            });
            write(&mut encoder, kind, name, help, samples)?;
        }
        Ok(())
    }
}

/// Returns the last 15 digits of a resource version, because an `f64` represents only 15 digits
/// exactly; `None` if they are not a number.
fn last_digits(resource_version: &str) -> Option<f64> {
    let start = resource_version.len().saturating_sub(15);
    resource_version.get(start..)?.parse::<u64>().ok().map(|number| number as f64)
}
