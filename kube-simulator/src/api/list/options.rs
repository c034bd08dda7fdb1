//! The query parameters of lists and watches, and the server's rules for combining them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::api::numbers::{parse_int, parse_uint};
use crate::api::status::{self, FieldError, Refusal};

/// The value of `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) watch: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<VersionMatch>,
    /// Maximum number of objects; 0 means no limit.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    /// Maximum duration of a watch.
    pub(crate) timeout: Option<Duration>,
    pub(crate) allow_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    /// The value of `resourceVersionMatch`, if it is invalid.
    unknown_match: Option<String>,
}

impl ListOptions {
    /// Parses a query. Unknown parameters are ignored, as in the server.
    pub(crate) fn parse(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut seen = BTreeSet::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            // Only the first value of a repeated parameter counts.
            if seen.insert(name.clone()) {
                options.set(&name, value.into_owned())?;
            }
        }
        Ok(options)
    }

    /// Returns the `resourceVersion` in the query of a get, if any. The server must not return an
    /// object from an older state.
    pub(crate) fn version_of_get(query: &str) -> Result<Option<u64>, Refusal> {
        let mut parameters = form_urlencoded::parse(query.as_bytes());
        let given = parameters.find(|(name, _)| name == "resourceVersion").map(|(_, value)| value);
        let parsed = given.filter(|text| !text.is_empty()).map(|text| parse_version(&text));
        parsed.transpose().map_err(status::internal)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Refusal> {
        match name {
            "watch" => self.watch = parse_bool(&value),
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "resourceVersion" => self.resource_version = value,
            "resourceVersionMatch" => self.set_match(value),
            "limit" => self.limit = usize::try_from(number(&value)?).unwrap_or(0),
            "continue" => self.continue_token = value,
            "timeoutSeconds" => {
                // The server counts in nanoseconds and ignores overflow.
                let nanoseconds = number(&value)?.wrapping_mul(1_000_000_000);
                // A negative timeout expires immediately. A timeout of 0 counts as absent.
                let timeout = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(0));
                self.timeout = (nanoseconds != 0).then_some(timeout);
            }
            "allowWatchBookmarks" => self.allow_bookmarks = parse_bool(&value),
            "sendInitialEvents" => self.send_initial_events = Some(parse_bool(&value)),
            _ => {}
        }
        Ok(())
    }

    fn set_match(&mut self, value: String) {
        match value.as_str() {
            "" => {}
            "Exact" => self.version_match = Some(VersionMatch::Exact),
            "NotOlderThan" => self.version_match = Some(VersionMatch::NotOlderThan),
            _ => self.unknown_match = Some(value),
        }
    }

    /// Returns the resource version of a list, if the client gives one.
    pub(crate) fn parsed_resource_version(&self) -> Result<Option<u64>, Refusal> {
        if self.resource_version.is_empty() {
            return Ok(None);
        }
        let parsed = parse_version(&self.resource_version);
        parsed.map(Some).map_err(|why| status::bad_request(format!("invalid resource version: {why}")))
    }

    /// Returns the resource version of a watch; 0 if the client gives none.
    pub(crate) fn watched_resource_version(&self) -> Result<u64, Refusal> {
        match self.resource_version.as_str() {
            "" => Ok(0),
            text => parse_version(text).map_err(status::internal),
        }
    }

    pub(crate) fn validate_for_list(&self) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        if self.has_match() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", why));
            }
            if !self.continue_token.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", why));
            }
            if let Some(unknown) = &self.unknown_match {
                errors.push(FieldError::unsupported(
                    "resourceVersionMatch",
                    unknown.as_str(),
                    "\"Exact\", \"NotOlderThan\", \"\"",
                ));
            }
            if self.version_match == Some(VersionMatch::Exact) && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden("resourceVersionMatch", why));
            }
        }
        if self.send_initial_events.is_some() {
            errors
                .push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        status::refuse("meta.k8s.io", "ListOptions", "", errors)
    }

    /// Returns an error for parameters that a watch does not support. If `supports_streaming` is
    /// false, `sendInitialEvents` is one of them.
    pub(crate) fn validate_for_watch(&self, supports_streaming: bool) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        let not_older_than = self.version_match == Some(VersionMatch::NotOlderThan);
        match self.send_initial_events {
            Some(_) if !not_older_than => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                errors.push(FieldError::forbidden("resourceVersionMatch", why));
            }
            None if self.has_match() => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", why));
            }
            _ => {}
        }
        if self.send_initial_events.is_some() && !supports_streaming {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            errors.push(FieldError::forbidden("sendInitialEvents", why));
        }
        if self.version_match == Some(VersionMatch::Exact) || self.unknown_match.is_some() {
            let given = self.unknown_match.as_deref().unwrap_or("Exact");
            errors.push(FieldError::unsupported("resourceVersionMatch", given, "\"NotOlderThan\""));
        }
        if self.has_match() && !self.continue_token.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            errors.push(FieldError::forbidden("resourceVersionMatch", why));
        }
        status::refuse("meta.k8s.io", "ListOptions", "", errors)
    }

    /// Sets `sendInitialEvents` for a watch without a resource version or from version 0, as
    /// servers with streaming lists do. Does nothing if `sendInitialEvents` or
    /// `resourceVersionMatch` is already set.
    pub(crate) fn default_to_streaming(&mut self) {
        let has_no_version = matches!(self.resource_version.as_str(), "" | "0");
        if has_no_version && self.send_initial_events.is_none() && !self.has_match() {
            self.send_initial_events = Some(true);
            self.version_match = Some(VersionMatch::NotOlderThan);
        }
    }

    /// Returns whether a watch starts with all objects and a bookmark after them.
    pub(crate) fn is_streaming_list(&self) -> bool {
        self.send_initial_events == Some(true) && self.allow_bookmarks
    }

    /// Converts a streaming list to a plain watch.
    pub(crate) fn ignore_streaming(&mut self) {
        self.send_initial_events = None;
        self.version_match = None;
        self.unknown_match = None;
    }

    pub(crate) fn is_exact_or_continued(&self) -> bool {
        let is_paged_at_version = self.limit > 0 && !matches!(self.resource_version.as_str(), "" | "0");
        match self.version_match {
            Some(VersionMatch::Exact) => true,
            Some(VersionMatch::NotOlderThan) => false,
            None => is_paged_at_version || !self.continue_token.is_empty(),
        }
    }

    fn has_match(&self) -> bool {
        self.version_match.is_some() || self.unknown_match.is_some()
    }
}

/// Parses a boolean as the server does: all values except `0` and `false` (in any case) are true.
pub(crate) fn parse_bool(value: &str) -> bool {
    !(value == "0" || value.eq_ignore_ascii_case("false"))
}

fn number(value: &str) -> Result<i64, Refusal> {
    parse_int(value).map_err(status::bad_request)
}

fn parse_version(text: &str) -> Result<u64, String> {
    parse_uint(text).map_err(|why| format!("resourceVersion: Invalid value: {text:?}: {why}"))
}
