//! Parses URL paths.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::api::catalogue::Served;
use crate::http::discovery::{Review, has_reviews, is_served, review};
use crate::http::request::Verb;
use crate::http::server::Server;

/// The target of a request.
#[derive(Clone, Debug)]
pub(super) enum Route {
    Collection {
        served: Arc<Served>,
        namespace: Option<String>,
    },
    Object {
        served: Arc<Served>,
        namespace: Option<String>,
        name: String,
        subresource: Subresource,
    },
    Document(Document),
    /// A kind of review, such as `TokenReview`, which clients can only create.
    Review(&'static Review),
    Version,
    Metrics,
    Health(Health),
    /// An unknown path in a served built-in API group. The answer is 404 with a `Status`.
    Missing,
    /// Any other unknown path, such as one of a custom resource that is not served. The answer is
    /// 404 in plain text.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// Whether the server runs (`/livez`).
    Alive,
    /// Whether the server is ready for requests (`/readyz`).
    Ready,
    /// The part of readiness that fails during a shutdown (`/readyz/shutdown`).
    NotShuttingDown,
}

/// An object (`Whole`) or one of its subresources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subresource {
    Whole,
    Status,
    Scale,
    Binding,
    Eviction,
    Finalize,
    /// An unknown or disabled subresource of a custom resource.
    Missing,
}

/// A discovery, `OpenAPI` or similar document.
#[derive(Clone, Debug)]
pub(super) enum Document {
    Paths,
    CoreVersions,
    Groups,
    Group(String),
    /// The resources of the group version with this path, such as `apis/apps/v1`.
    Resources(String),
    /// One document for all groups and versions.
    OpenApiV2,
    OpenApiIndex,
    OpenApi(String),
}

pub(super) fn route(server: &Server, path: &str) -> Route {
    // Segments are decoded after splitting, because an encoded slash is part of a name.
    let decode = |segment| percent_decode_str(segment).decode_utf8_lossy();
    let decoded: Vec<Cow<'_, str>> = path.trim_matches('/').split('/').map(decode).collect();
    let segments: Vec<&str> = decoded.iter().map(AsRef::as_ref).collect();
    let found = match segments.as_slice() {
        ["version"] => Some(Route::Version),
        ["metrics"] => Some(Route::Metrics),
        ["readyz"] => Some(Route::Health(Health::Ready)),
        ["readyz", "shutdown"] => Some(Route::Health(Health::NotShuttingDown)),
        ["healthz" | "livez" | "readyz", ..] => Some(Route::Health(Health::Alive)),
        ["openapi", "v2"] => Some(Route::Document(Document::OpenApiV2)),
        ["openapi", "v3"] => Some(Route::Document(Document::OpenApiIndex)),
        ["openapi", "v3", rest @ ..] => Some(Route::Document(Document::OpenApi(rest.join("/")))),
        [""] => Some(Route::Document(Document::Paths)),
        ["api"] => Some(Route::Document(Document::CoreVersions)),
        ["apis"] => Some(Route::Document(Document::Groups)),
        ["apis", group] => Some(Route::Document(Document::Group((*group).to_owned()))),
        ["api", version, rest @ ..] => within(server, &format!("api/{version}"), rest),
        ["apis", group, version, rest @ ..] => within(server, &format!("apis/{group}/{version}"), rest),
        _ => None,
    };
    found.unwrap_or_else(|| unknown_path(server, &segments))
}

fn unknown_path(server: &Server, segments: &[&str]) -> Route {
    let group = match segments {
        ["api", ..] => "",
        ["apis", group, ..] => group,
        _ => return Route::Unknown,
    };
    let is_its_own = |served: &Arc<Served>| served.kind.group == group && served.kind.is_built_in();
    let is_built_in = has_reviews(group) || server.api.catalogue.all().iter().any(is_its_own);
    if is_built_in { Route::Missing } else { Route::Unknown }
}

/// Finds the target of a path. `prefix` is the path up to and including the version, and `segments`
/// is the rest.
fn within(server: &Server, prefix: &str, segments: &[&str]) -> Option<Route> {
    let served = |plural: &str| server.api.catalogue.at(&format!("/{prefix}/{plural}"));
    let namespaced = |plural: &str| served(plural).filter(|served| served.kind.namespaced);
    let reviewed = match segments {
        [plural] => review(prefix, plural, false),
        ["namespaces", _, plural] => review(prefix, plural, true),
        _ => None,
    };
    if let Some(review) = reviewed {
        return Some(Route::Review(review));
    }
    match segments {
        [] => is_served(server, prefix).then(|| Route::Document(Document::Resources(prefix.to_owned()))),
        // The path of a namespace's subresource looks like the path of a collection in the
        // namespace.
        ["namespaces", name, subresource @ ("status" | "finalize")] => {
            object(served("namespaces")?, None, name, &[subresource])
        }
        ["namespaces", namespace, plural] => {
            let served = namespaced(plural)?;
            Some(Route::Collection { served, namespace: Some((*namespace).to_owned()) })
        }
        ["namespaces", namespace, plural, name, subresource @ ..] => {
            object(namespaced(plural)?, Some((*namespace).to_owned()), name, subresource)
        }
        [plural] => Some(Route::Collection { served: served(plural)?, namespace: None }),
        [plural, name, subresource @ ..] => {
            let served = served(plural).filter(|served| !served.kind.namespaced)?;
            object(served, None, name, subresource)
        }
    }
}

fn object(served: Arc<Served>, namespace: Option<String>, name: &str, segments: &[&str]) -> Option<Route> {
    let kind = &served.kind;
    let is_pod = kind.kind == "Pod" && kind.group.is_empty();
    let subresource = match segments {
        [] => Subresource::Whole,
        ["status"] if kind.status_subresource => Subresource::Status,
        ["scale"] if kind.scale.is_some() => Subresource::Scale,
        ["binding"] if is_pod => Subresource::Binding,
        ["eviction"] if is_pod => Subresource::Eviction,
        ["finalize"] if kind.is_namespace() => Subresource::Finalize,
        _ if !kind.is_built_in() => Subresource::Missing,
        _ => return None,
    };
    Some(Route::Object { served, namespace, name: name.to_owned(), subresource })
}

impl Route {
    pub(super) fn verb(&self, method: &Method, watch: bool) -> Verb {
        match (self, method) {
            (Self::Collection { .. }, &Method::GET) if watch => Verb::Watch,
            (Self::Collection { .. }, &Method::GET) => Verb::List,
            (Self::Collection { .. } | Self::Object { .. } | Self::Review(_), &Method::POST) => Verb::Create,
            (Self::Collection { .. }, &Method::DELETE) => Verb::DeleteCollection,
            (Self::Object { .. }, &Method::GET) => Verb::Get,
            (Self::Collection { .. } | Self::Object { .. }, &Method::PUT) => Verb::Update,
            (Self::Collection { .. } | Self::Object { .. }, &Method::PATCH) => Verb::Patch,
            (Self::Object { .. }, &Method::DELETE) => Verb::Delete,
            _ => Verb::Other,
        }
    }
}
