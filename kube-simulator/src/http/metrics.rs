//! `/metrics`: the number of slow watches that the server has ended since its start
//! (`pkg/storage/cacher/metrics`), except watches of Event objects, which have no watch cache.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};

use super::respond::{self, HttpResponse};

const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

const TERMINATED: &str = "apiserver_terminated_watchers_total";

/// Returns the metrics. `terminated` contains the number of ended slow watches by group and
/// resource.
pub(super) fn answer(terminated: &BTreeMap<(String, String), u64>) -> HttpResponse {
    let mut response = respond::text(StatusCode::OK, text(terminated));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    response
}

fn text(terminated: &BTreeMap<(String, String), u64>) -> String {
    let mut text = String::new();
    // A metric without samples is omitted.
    if !terminated.is_empty() {
        let help = "[ALPHA] Counter of watchers closed due to unresponsiveness broken by resource type.";
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {TERMINATED} {help}\n# TYPE {TERMINATED} counter");
    }
    for ((group, resource), count) in terminated {
        // Names of groups and resources need no escapes.
        let _ = writeln!(text, "{TERMINATED}{{group=\"{group}\",resource=\"{resource}\"}} {count}");
    }
    text
}
