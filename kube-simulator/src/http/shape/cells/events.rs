//! The table cells of events.

use jiff::Timestamp;
use serde_json::Value;

use super::super::text::{number, text, text_or};
use super::since;

/// Returns the table cell of an event. `v1` and `events.k8s.io/v1` have different names for the
/// same fields.
pub(super) fn of_event(column: &str, event: &Value, now: Timestamp) -> Option<Value> {
    let either = |name: &str, other: &str| event.get(name).or(event.get(other)).unwrap_or(&Value::Null);
    let series = &event["series"];
    let first = Some(either("firstTimestamp", "deprecatedFirstTimestamp")).filter(|time| time.is_string());
    let first = first.or(event.get("eventTime"));
    let about = either("involvedObject", "regarding");
    Some(match column {
        "Last Seen" => {
            let last = either("lastTimestamp", "deprecatedLastTimestamp");
            let last = series.get("lastObservedTime").or(Some(last).filter(|time| time.is_string()));
            since(last.or(first), now).into()
        }
        "First Seen" => since(first, now).into(),
        "Type" => text(&event["type"]).into(),
        "Reason" => text(&event["reason"]).into(),
        "Object" => {
            let kind = text(&about["kind"]).to_lowercase();
            match text(&about["name"]) {
                "" => kind.into(),
                name => format!("{kind}/{name}").into(),
            }
        }
        "Subobject" => text(&about["fieldPath"]).into(),
        "Source" => {
            let source = either("source", "deprecatedSource");
            let component =
                text_or(&source["component"], text(either("reportingComponent", "reportingController")));
            let instance = text_or(&source["host"], text(&event["reportingInstance"]));
            match text(&instance) {
                "" => component,
                instance => format!("{}, {instance}", text(&component)).into(),
            }
        }
        "Message" => text(either("message", "note")).trim().into(),
        "Count" => {
            let count = series.get("count").unwrap_or(either("count", "deprecatedCount"));
            number(count).max(1).into()
        }
        _ => return None,
    })
}
