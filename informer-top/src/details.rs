//! The texts of the lower panes: the selected informer, and the controllers.
//!
//! The last reconcile call of a failing key has failed, and the controller retries after a delay. A
//! parked key waits for a cache that possibly lacks data for this key, and is then queued again.

use ratatui::style::Modifier;
use ratatui::text::Line;

use crate::data::{Controller, Details, Text};
use crate::format::{NONE, bytes, count, counted, duration, rate, table, wrap};
use crate::table::Row;

/// For each controller, at most this number of failing keys and this number of parked keys are
/// shown.
const MAX_KEYS: usize = 3;
const MAX_QUARANTINED: usize = 5;

/// A controller records at most this number of failing keys.
const MAX_RECORDED: usize = 256;

/// Returns the lines of the pane of the selected informer.
pub(crate) fn informer(
    row: &Row,
    details: Option<&Result<Details, Text>>,
    columns: usize,
) -> Vec<Line<'static>> {
    let mut lines = plain(&facts(row), columns);
    lines.extend(handlers(row));
    match details {
        Some(Ok(details)) => lines.extend(more(row, details, columns)),
        Some(Err(reason)) => lines.extend(plain(&[format!("no details: {}", &**reason)], columns)),
        None => {}
    }
    lines
}

/// Breaks texts into lines of at most `columns` columns.
fn plain(texts: &[String], columns: usize) -> Vec<Line<'static>> {
    texts.iter().flat_map(|text| wrap(text, columns)).map(Line::raw).collect()
}

/// Returns a line with `title` in bold, followed by `lines`; nothing if `lines` is empty.
fn section(title: &'static str, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    let title = (!lines.is_empty()).then(|| Line::styled(title, Modifier::BOLD));
    title.into_iter().chain(lines).collect()
}

/// Returns the lines of a table with a bold head. All columns but the first have numbers.
fn headed<const N: usize>(rows: &[[String; N]]) -> Vec<Line<'static>> {
    let mut is_number = [true; N];
    is_number[0] = false;
    let mut lines: Vec<_> = table(is_number, rows).into_iter().map(Line::raw).collect();
    if let Some(head) = lines.first_mut() {
        *head = std::mem::take(head).style(Modifier::BOLD);
    }
    lines
}

/// Returns three texts about an informer. They show its health, its objects, and its activity, for
/// example the number of lists.
fn facts(row: &Row) -> Vec<String> {
    let informer = &row.informer;
    let mut health = informer.health_words();
    if let Some(age) = informer.last_event_ms {
        health.push_str(&format!(", last event {} ago", duration(age)));
    }
    if !informer.synced {
        health.push_str(", not synced");
    }
    let known = |text: &Text| if text.is_empty() { NONE.to_owned() } else { text.to_string() };
    let mut versions = format!("watermark {}", known(&informer.watermark));
    if informer.watermark != informer.received {
        // Usually, the queue still contains the changes between the watermark and the received
        // version.
        versions.push_str(&format!(", received {}", known(&informer.received)));
    }
    let size = informer.bytes.map(|size| format!(" · ≈ {} as JSON", bytes(size))).unwrap_or_default();
    let (kind, objects) = (&*informer.object, counted(informer.objects, "object"));
    let events = &informer.events;
    let [added, modified, deleted] = [events.added, events.modified, events.deleted].map(count);
    let bookmarks = counted(events.bookmarks, "bookmark");
    let lists = counted(informer.lists, "list");
    let watches =
        format!("{} watch{}", count(informer.watches), if informer.watches == 1 { "" } else { "es" });
    let calls = format!("{} handler calls/s", rate(row.rates.calls));
    vec![
        health,
        format!("{kind} · {objects}{size} · {versions}"),
        format!(
            "{added} added, {modified} modified, {deleted} deleted, {bookmarks} · {lists}, {watches} · {calls}"
        ),
    ]
}

fn handlers(row: &Row) -> Vec<Line<'static>> {
    if row.informer.handlers.is_empty() {
        return vec![Line::raw("no handlers")];
    }
    let head = ["HANDLER", "PENDING", "CALLS", "MEAN CALL", "LONGEST CALL", "COALESCED", "PANICS"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(row.informer.handlers.iter().map(|handler| {
        let mean = match handler.delivered {
            0 => NONE.to_owned(),
            calls => duration(handler.busy_ms / calls as f64),
        };
        let [pending, calls, coalesced, panics] =
            [handler.pending, handler.delivered, handler.coalesced, handler.panicked].map(count);
        [plain_name(&handler.name), pending, calls, mean, duration(handler.slowest_ms), coalesced, panics]
    }));
    headed(&rows)
}

/// Removes the module paths from a type name: `shop::Audit<core::Pod>` becomes `Audit<Pod>`. By
/// default, a handler has the name of its type.
fn plain_name(name: &str) -> String {
    let mut plain = String::new();
    for part in name.split("::") {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        plain.truncate(plain.trim_end_matches(is_word).len());
        plain.push_str(part);
    }
    plain
}

fn more(row: &Row, details: &Details, columns: usize) -> Vec<Line<'static>> {
    let quarantined = details.quarantined_objects.iter().map(|object| {
        let key = object.key.as_deref().unwrap_or("(no readable name)");
        format!("{key}: {}", &*object.error)
    });
    let total = row.informer.quarantined;
    let quarantined = first(quarantined.collect(), MAX_QUARANTINED, total, "and", "quarantined object");
    let lists = details.recent_lists.iter().map(|list| {
        let age = format!("{} ago", duration(list.age_ms));
        let objects = counted(list.objects, "object");
        [age, objects, format!("in {}", duration(list.took_ms)), list.cause.to_string()]
    });
    let lists = table([true, true, false, false], &lists.collect::<Vec<_>>());
    let failures = details.failures_by_cause.iter();
    let failures: Vec<_> =
        failures.map(|(cause, number)| format!("{}: {}", &**cause, count(*number))).collect();
    let namespaces = details.namespaces.iter();
    let namespaces: Vec<_> = namespaces.map(|it| format!("{}: {}", &*it.name, &*it.health_text)).collect();
    [
        section("QUARANTINED OBJECTS", plain(&quarantined, columns)),
        section("RECENT LISTS", lists.into_iter().map(Line::raw).collect()),
        section("FAILED REQUESTS BY CAUSE", plain(&failures, columns)),
        section("NAMESPACES", plain(&namespaces, columns)),
    ]
    .concat()
}

/// Returns the first `most` lines; nothing if `lines` is empty. If lines are omitted, adds a line
/// with their number. For example, if `total` is 8, `most` is 5, `lead` is "and" and `noun` is
/// "parked key", this line is `and 3 more parked keys`.
fn first(mut lines: Vec<String>, most: usize, total: u64, lead: &str, noun: &str) -> Vec<String> {
    // The inspector sends only a part of a long list. `total` is 0 if the total is unknown.
    let all = total.max(lines.len() as u64);
    lines.truncate(most);
    let others = all - lines.len() as u64;
    if others > 0 && !lines.is_empty() {
        lines.push(format!("{lead} {}", counted(others, &format!("more {noun}"))));
    }
    lines
}

/// Returns a table of the controllers. Texts about their failing keys and parked keys follow the
/// table. A parked key waits for a cache.
pub(crate) fn controllers(controllers: &[Controller], columns: usize) -> Vec<Line<'static>> {
    if controllers.is_empty() {
        return Vec::new();
    }
    let head = ["CONTROLLER", "QUEUED", "ACTIVE", "PARKED", "SUCCEEDED", "FAILED", "LONGEST CALL"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(controllers.iter().map(|it| {
        let [queued, active, parked, succeeded, failed] =
            [it.queued, it.active, it.parked_now, it.succeeded, it.failed].map(count);
        [name(it).to_owned(), queued, active, parked, succeeded, failed, duration(it.longest_ms)]
    }));
    let keys: Vec<_> = controllers.iter().flat_map(keys).collect();
    [headed(&rows), plain(&keys, columns)].concat()
}

fn name(controller: &Controller) -> &str {
    if controller.name.is_empty() { "controller" } else { &controller.name }
}

/// Returns texts about at most [`MAX_KEYS`] failing keys and at most [`MAX_KEYS`] parked keys of a
/// controller.
fn keys(controller: &Controller) -> Vec<String> {
    let name = name(controller);
    let failed = controller.failed_keys.iter().map(|it| {
        let (failures, retry) = (counted(it.failures, "failure"), duration(it.retry_ms));
        format!("{name}: {} has {failures}, retry in {retry}: {}", &*it.key, &*it.failure)
    });
    let parked = controller.parked_keys.iter();
    let parked = parked.map(|it| format!("{name}: {} is parked for {}", &*it.key, duration(it.age_ms)));
    let failed: Vec<_> = failed.collect();
    // The number of failing keys that the controller did not record is unknown.
    let at_least = if failed.len() < MAX_RECORDED { "" } else { " at least" };
    let lead = format!("{name}: and");
    let mut lines = first(failed, MAX_KEYS, 0, &format!("{lead}{at_least}"), "failing key");
    lines.extend(first(parked.collect(), MAX_KEYS, controller.parked_now, &lead, "parked key"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_handler_type_is_shortened() {
        assert_eq!(plain_name("billing"), "billing");
        assert_eq!(plain_name("shop::Handler<core::v1::Pod, a::B>"), "Handler<Pod, B>");
        assert_eq!(plain_name("controller \"pods\""), "controller \"pods\"");
    }
}
