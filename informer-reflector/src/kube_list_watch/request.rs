//! [`Endpoint`]: builds the list and watch requests of a resource.
//!
//! The URIs are built here because kube omits `resourceVersion=0` if there is a `limit`, which
//! turns a list from the server's cache into one from etcd. Note: with `timeoutSeconds=0`, the
//! server chooses the timeout itself.

use std::fmt;
use std::time::Duration;

use http::header::ACCEPT;
use informer_core::{ListOptions, ListWatchError, ObjectKey, ResourceVersionMatch, WatchOptions};
use kube::Resource;
use kube::client::Body;

use super::tweaks::ListTweaks;
use crate::decode::PROTOBUF;

const JSON: &str = "application/json";

/// A resource in one namespace or in all, with its selectors.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    path: String,
    pub(super) namespace: Option<String>,
    /// The prefix of the resource in log and error messages: `scheduler` in `scheduler/pods`. Set
    /// by [`KubeListWatch::name`](super::KubeListWatch::name).
    pub(super) name: Option<String>,
    pub(super) metadata_only: bool,
    pub(super) tweaks: ListTweaks,
}

impl Endpoint {
    pub(super) fn new<K: Resource>(namespace: Option<&str>, dynamic_type: &K::DynamicType) -> Self {
        let (plural, group) = (K::plural(dynamic_type), K::group(dynamic_type));
        let resource = if group.is_empty() { plural.into_owned() } else { format!("{plural}.{group}") };
        Self {
            path: K::url_path(dynamic_type, namespace.map(encode).as_deref()),
            namespace: namespace.map(str::to_owned),
            name: None,
            metadata_only: K::metadata_api(),
            tweaks: ListTweaks { resource, ..ListTweaks::default() },
        }
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Self {
        let (version, plural) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let path = format!("{version}/namespaces/{}/{plural}", encode(namespace));
        Self { path, namespace: Some(namespace.to_owned()), ..self.clone() }
    }

    /// Returns an endpoint that selects only the object with this key, without the user's label and
    /// field selectors. If the key has no namespace, the endpoint can select objects of several
    /// namespaces. Returns `None` if this endpoint is limited to another namespace.
    pub(super) fn of_object(&self, object: &ObjectKey) -> Option<Self> {
        let mut only = match (self.namespace.as_deref(), object.namespace()) {
            (_, None) => self.clone(),
            (None, Some(namespace)) => self.in_namespace(namespace),
            (Some(own), Some(namespace)) if own == namespace => self.clone(),
            _ => return None,
        };
        only.tweaks.label_selector.clear();
        // Names of some kinds, such as roles, can contain the separators of selectors.
        let name = object.name().replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        only.tweaks.field_selector = format!("metadata.name={name}");
        Some(only)
    }

    pub(super) fn list_request(
        &self,
        options: &ListOptions,
        protobuf: bool,
    ) -> Result<http::Request<Body>, ListWatchError> {
        let mut query = Query::default();
        if let Some(version) = &options.resource_version {
            query.add("resourceVersion", &version.to_string());
        }
        if let Some(matching) = options.resource_version_match {
            let matching = match matching {
                ResourceVersionMatch::NotOlderThan => "NotOlderThan",
                ResourceVersionMatch::Exact => "Exact",
            };
            query.add("resourceVersionMatch", matching);
        }
        if let Some(limit) = options.limit {
            query.add("limit", &limit.to_string());
        }
        if let Some(token) = &options.continue_token {
            query.add("continue", token);
        }
        self.request("list", query, self.accept("PartialObjectMetadataList", protobuf))
    }

    pub(super) fn watch_request(
        &self,
        options: &WatchOptions,
        protobuf: bool,
    ) -> Result<http::Request<Body>, ListWatchError> {
        let mut query = Query::default();
        query.add("watch", "1");
        query.add("resourceVersion", &options.resource_version.to_string());
        if options.send_initial_events {
            query.add("sendInitialEvents", "true");
            query.add("resourceVersionMatch", "NotOlderThan");
        }
        if options.allow_bookmarks {
            query.add("allowWatchBookmarks", "true");
        }
        query.add("timeoutSeconds", &whole_seconds(options.timeout).to_string());
        self.request("watch", query, self.accept("PartialObjectMetadata", protobuf))
    }

    /// Returns the accepted media types, in order of preference.
    fn accept(&self, metadata_form: &str, protobuf: bool) -> String {
        let form = if self.metadata_only {
            format!(";as={metadata_form};g=meta.k8s.io;v=v1")
        } else {
            String::new()
        };
        if protobuf { format!("{PROTOBUF}{form}, {JSON}{form}") } else { format!("{JSON}{form}") }
    }

    /// Builds a request. `verb` is the name of the request in kube's tracing.
    fn request(
        &self,
        verb: &'static str,
        mut query: Query,
        accept: String,
    ) -> Result<http::Request<Body>, ListWatchError> {
        self.tweaks.check()?;
        query.add("labelSelector", &self.tweaks.label_selector);
        query.add("fieldSelector", &self.tweaks.field_selector);
        for (name, value) in &self.tweaks.parameters {
            query.add(name, value);
        }
        let uri = format!("{}{}", self.path, query.0);
        if uri.len() > MAX_URI {
            let error = format!(
                "its path and query have {} bytes, and the maximum is {MAX_URI}; if the program sets long selectors, shorten them",
                uri.len()
            );
            return Err(ListWatchError::InvalidRequest(error.into()));
        }
        http::Request::get(uri)
            .header(ACCEPT, accept)
            .extension(verb)
            .body(Body::empty())
            .map_err(|error| ListWatchError::InvalidRequest(error.into()))
    }
}

impl fmt::Display for Endpoint {
    /// Writes `deployments.apps in namespace "shop" with labels "app=web"`, for example.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}/")?;
        }
        if self.metadata_only {
            f.write_str("metadata of ")?;
        }
        let ListTweaks { resource, label_selector, field_selector, parameters } = &self.tweaks;
        f.write_str(resource)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace \"{namespace}\"")?;
        }
        let mut conjunction = "with";
        let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value));
        for (what, selector) in
            [("labels", label_selector), ("fields", field_selector)].into_iter().chain(parameters)
        {
            if !selector.is_empty() {
                write!(f, " {conjunction} {what} \"{selector}\"")?;
                conjunction = "and";
            }
        }
        Ok(())
    }
}

/// The maximum length of path and query. The crate `http` allows 65,534 bytes for a URI.
const MAX_URI: usize = 60_000;

/// The query of a URI, with its question mark; empty without parameters.
#[derive(Default)]
struct Query(String);

impl Query {
    /// Adds a parameter, unless its value is empty. An empty value has no meaning for the server.
    fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.0.push(if self.0.is_empty() { '?' } else { '&' });
        self.0.push_str(&encode(name));
        self.0.push('=');
        self.0.push_str(&encode(value));
    }
}

/// Percent-encodes all characters except the unreserved ones.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

fn whole_seconds(timeout: Duration) -> u64 {
    let rounded_up = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
    // The server parses the seconds as a signed 64-bit integer.
    rounded_up.clamp(1, i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_in_a_uri_are_encoded() {
        assert_eq!(encode("a=b,c in (d)"), "a%3Db%2Cc%20in%20%28d%29");
        assert_eq!(encode("AZaz09-._~"), "AZaz09-._~");
        assert_eq!(encode("é+&?/#%"), "%C3%A9%2B%26%3F%2F%23%25");
    }

    #[test]
    fn a_timeout_is_rounded_up_and_never_zero() {
        let seconds = |millis| whole_seconds(Duration::from_millis(millis));
        assert_eq!([0, 1, 1000, 1001].map(seconds), [1, 1, 1, 2]);
        assert_eq!(whole_seconds(Duration::MAX), i64::MAX as u64);
    }
}
