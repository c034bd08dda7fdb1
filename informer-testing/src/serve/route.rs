//! What a URL path is about.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::request::Verb;
use crate::server::Server;
use crate::storage::Table;
use crate::writes::Part;

/// The target of a request.
#[derive(Clone, Debug)]
pub(super) enum Route {
    Collection { table: Arc<Table>, namespace: Option<String> },
    Object { table: Arc<Table>, namespace: Option<String>, name: String, part: Part },
    Version,
    Health,
    Unknown,
}

/// Finds the target of a path.
pub(super) fn route(server: &Server, path: &str) -> Route {
    match path {
        "/version" | "/version/" => return Route::Version,
        "/healthz" | "/livez" | "/readyz" => return Route::Health,
        _ => {}
    }
    // Split first and decode then: an encoded slash is part of a name.
    let decode = |segment| percent_decode_str(segment).decode_utf8_lossy();
    let decoded: Vec<Cow<'_, str>> = path.trim_matches('/').split('/').map(decode).collect();
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let found = match segments.as_slice() {
        ["api", version, rest @ ..] => within(server, &format!("/api/{version}"), rest),
        ["apis", group, version, rest @ ..] => within(server, &format!("/apis/{group}/{version}"), rest),
        _ => None,
    };
    found.unwrap_or(Route::Unknown)
}

/// Finds the target of the segments behind group and version.
fn within(server: &Server, prefix: &str, segments: &[&str]) -> Option<Route> {
    let table = |plural: &str| server.table_at(&format!("{prefix}/{plural}"));
    match segments {
        // A namespace's own subresource looks like a collection within it.
        ["namespaces", name, subresource @ ("status" | "finalize")] => {
            object(table("namespaces")?, None, name, &[subresource])
        }
        ["namespaces", namespace, plural] => {
            let table = table(plural).filter(|table| table.kind.namespaced)?;
            Some(Route::Collection { table, namespace: Some((*namespace).to_owned()) })
        }
        ["namespaces", namespace, plural, name, subresource @ ..] => {
            let table = table(plural).filter(|table| table.kind.namespaced)?;
            object(table, Some((*namespace).to_owned()), name, subresource)
        }
        [plural] => Some(Route::Collection { table: table(plural)?, namespace: None }),
        [plural, name, subresource @ ..] => {
            let table = table(plural).filter(|table| !table.kind.namespaced)?;
            object(table, None, name, subresource)
        }
        [] => None,
    }
}

fn object(table: Arc<Table>, namespace: Option<String>, name: &str, subresource: &[&str]) -> Option<Route> {
    let part = match subresource {
        [] => Part::Main,
        ["status"] if table.kind.status_subresource => Part::Status,
        _ => return None,
    };
    Some(Route::Object { table, namespace, name: name.to_owned(), part })
}

impl Route {
    /// Names the request in the words of Kubernetes.
    pub(super) fn verb(&self, method: &Method, watch: bool) -> Verb {
        match (self, method) {
            (Self::Collection { .. }, &Method::GET) if watch => Verb::Watch,
            (Self::Collection { .. }, &Method::GET) => Verb::List,
            (Self::Collection { .. }, &Method::POST) => Verb::Create,
            (Self::Collection { .. }, &Method::DELETE) => Verb::DeleteCollection,
            (Self::Object { .. }, &Method::GET) => Verb::Get,
            (Self::Object { .. }, &Method::PUT) => Verb::Update,
            (Self::Object { .. }, &Method::PATCH) => Verb::Patch,
            (Self::Object { .. }, &Method::DELETE) => Verb::Delete,
            _ => Verb::Other,
        }
    }
}
