//! The JSON documents about informers and controllers.
//!
//! The page polls the overview every second while it is visible. Polling is simpler than
//! server-sent events, needs no state per reader, ends when the tab is closed, and continues after
//! a restart of the program. Counters are sent as totals, and the page computes rates from them.

use std::collections::HashMap;
use std::time::Duration;

use informer_controller::RunnerMonitor;
use informer_core::HandlerStats;
use informer_factory::status::{InformerReport, InformerState, StopCause};
use informer_reflector::Health;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shown;
use super::mask::{MASKED, Mask};
use super::view::View;

/// Maximum number of quarantined objects, which can't be decoded or transformed, in the JSON
/// document of an informer. Also the maximum number of failures of index functions.
const MAX_QUARANTINED: usize = 200;
/// Maximum number of last changes in the JSON document of an informer.
const NEWEST_CHANGES: usize = 30;

pub(super) struct Informer<'a> {
    /// The identifier of the informer in requests to the inspector, such as `pods (Pod)`.
    pub(super) id: String,
    pub(super) report: InformerReport,
    /// Reads the objects of the informer for the page. `None` if the program has not passed the
    /// informer to [`Inspector::objects`](super::Inspector::objects).
    pub(super) view: Option<&'a View>,
}

impl Shown {
    pub(super) fn informers(&self) -> Vec<Informer<'_>> {
        let mut seen = HashMap::<String, usize>::new();
        let reports = self.factory.informers().into_iter();
        let informers = reports.map(|report| {
            let mut id = format!("{} ({})", report.description, crate::short(report.object));
            let count = seen.entry(id.clone()).or_default();
            *count += 1;
            if *count > 1 {
                id = format!("{id} {count}");
            }
            let view = self.views.iter().find(|view| view.informer.is_of(&report));
            Informer { id, report, view }
        });
        informers.collect()
    }

    pub(super) fn overview(&self) -> Value {
        let informers: Vec<_> = self.informers().iter().map(Informer::summary).collect();
        let controllers: Vec<_> = self.controllers.iter().map(controller).collect();
        json!({
            "at": self.started.elapsed().as_millis() as u64,
            "memory": resident_memory(),
            "informers": informers,
            "controllers": controllers,
        })
    }
}

impl Informer<'_> {
    fn summary(&self) -> Value {
        let report = &self.report;
        let (counts, status) = (report.status.counts(), &report.status);
        let handlers: Vec<_> = report.handlers.iter().map(|(name, stats)| handler(name, stats)).collect();
        json!({
            "id": self.id,
            "description": report.description,
            "object": crate::short(report.object),
            "state": state(report.state),
            "synced": report.has_synced,
            "health": report.health.name(),
            "healthText": report.health.to_string(),
            "lastEventMs": match report.health {
                Health::Live { last_event } => Some(ms(last_event.elapsed())),
                _ => None,
            },
            "objects": report.objects,
            "bytes": self.view.and_then(View::size),
            "shown": self.view.is_some(),
            "watermark": report.watermark.to_string(),
            "received": status.last_sync_resource_version().to_string(),
            "queued": report.queued,
            "quarantined": status.quarantined().len(),
            "lists": counts.lists,
            "watches": counts.watches,
            "failures": counts.failures.values().sum::<u64>(),
            "events": {
                "added": counts.events.added,
                "modified": counts.events.modified,
                "deleted": counts.events.deleted,
                "bookmarks": counts.events.bookmarks,
                "other": counts.events.other,
            },
            "handlers": handlers,
        })
    }

    /// Returns the JSON document for the page of this informer.
    pub(super) fn details(&self, mask: &Mask) -> Value {
        let status = &self.report.status;
        let lists = status.recent_lists();
        let lists: Vec<_> = lists
            .iter()
            .rev()
            .map(|list| {
                let error = list.error.as_ref().map(|error| format!(": {error}"));
                json!({
                    "cause": format!("{}{}", list.cause, error.unwrap_or_default()), "ageMs": ms(list.completed.elapsed()),
                    "tookMs": ms(list.took), "objects": list.objects,
                })
            })
            .collect();
        let all = status.quarantined();
        let quarantined = all.iter().take(MAX_QUARANTINED).map(|rejected| {
            json!({
                "key": rejected.key.as_ref().map(ToString::to_string),
                "resourceVersion": rejected.resource_version.to_string(),
                "error": rejected.error,
            })
        });
        let namespaces = status.namespaces().into_iter().map(|(name, status)| {
            let health = status.health();
            json!({ "name": name, "health": health.name(), "healthText": health.to_string() })
        });
        let mut document = self.summary();
        document["recentLists"] = lists.into();
        document["failuresByCause"] = json!(status.counts().failures);
        document["quarantinedObjects"] = quarantined.collect();
        document["namespaces"] = namespaces.collect();
        document["indexFailures"] = self.index_failures(mask);
        document["changes"] = self.changes();
        document
    }

    /// Returns one text per failure of an index function. The errors of indexes that are not in
    /// [`View::searchable_indexes`] are masked, because they can contain masked values.
    fn index_failures(&self, mask: &Mask) -> Value {
        let Some(view) = self.view else { return json!([]) };
        let searchable = view.searchable_indexes(mask);
        let lines = view.indexer.index_failures().into_iter().take(MAX_QUARANTINED).map(|mut failure| {
            if !searchable.contains(&failure.index) {
                failure.error = MASKED.to_owned();
            }
            failure.to_string()
        });
        lines.collect::<Vec<_>>().into()
    }

    fn changes(&self) -> Value {
        let changes = self.view.map(|view| view.changes.newest(NEWEST_CHANGES)).unwrap_or_default();
        let lines = changes.iter().map(|change| {
            json!({ "kind": change.kind, "key": change.key.as_str(), "ageMs": ms(change.at.elapsed()) })
        });
        lines.collect()
    }
}

fn handler(name: &str, stats: &HandlerStats) -> Value {
    json!({
        "name": name,
        "pending": stats.pending,
        "delivered": stats.delivered,
        "coalesced": stats.coalesced,
        "panicked": stats.panicked,
        "busyMs": stats.busy.as_secs_f64() * 1000.0,
        "slowestMs": stats.slowest.as_secs_f64() * 1000.0,
    })
}

fn controller(monitor: &RunnerMonitor) -> Value {
    let stats = monitor.stats();
    let parked = monitor.parked_keys().into_iter();
    let parked = parked.map(|it| json!({ "key": plain(&it.key), "ageMs": ms(it.since.elapsed()) }));
    let now = Instant::now();
    let failed = monitor.failed_keys().into_iter().map(|it| {
        json!({
            "key": plain(&it.key), "failure": it.failure, "failures": it.failures,
            "ageMs": ms(it.at.elapsed()), "retryMs": ms(it.retry_at.saturating_duration_since(now)),
        })
    });
    json!({
        "name": monitor.name(),
        "queued": monitor.queued(),
        "active": stats.active,
        "longestActiveMs": ms(stats.longest_active),
        "longestMs": ms(stats.longest),
        "succeeded": stats.succeeded,
        "failed": stats.failed + stats.timed_out + stats.panicked,
        "panicked": stats.panicked,
        "timedOut": stats.timed_out,
        "dropped": stats.dropped,
        "parkedNow": stats.parked_now,
        "parkedKeys": parked.collect::<Vec<_>>(),
        "failedKeys": failed.collect::<Vec<_>>(),
    })
}

/// Returns a key without the quotes that `Debug` writes around text.
fn plain(key: &str) -> &str {
    key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key)
}

fn state(state: InformerState) -> &'static str {
    match state {
        InformerState::Idle => "not started",
        InformerState::Running => "running",
        InformerState::Stopped(StopCause::Panicked) => "panicked",
        _ => "stopped",
    }
}

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the resident memory of this process in bytes; `None` on systems other than Linux.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
