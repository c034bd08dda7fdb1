//! The HTTP endpoints of the inspector: the files of the page, and JSON documents.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use informer_core::{AnyObject, Cached};
use serde_json::{Value, json};

use super::Shown;
use super::changes::Change;
use super::diff::diff;
use super::overview::{Informer, ms};
use super::query::Query;
use super::search::search;
use super::view::View;

/// The number of objects on a page of search results if the request has no `limit`.
const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 500;

/// The files of the inspector's web page: name, content type and text.
const FILES: [(&str, &str, &str); 8] = [
    ("", "text/html", include_str!("page/index.html")),
    ("style.css", "text/css", include_str!("page/style.css")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("inspector.js", "text/javascript", include_str!("page/inspector.js")),
    ("draw.js", "text/javascript", include_str!("page/draw.js")),
    ("informer.js", "text/javascript", include_str!("page/informer.js")),
    ("objects.js", "text/javascript", include_str!("page/objects.js")),
    ("server.js", "text/javascript", include_str!("page/server.js")),
];

type Answer = Result<Value, (StatusCode, String)>;

/// Returns the routes below `/inspect`. The routes do not check access; `serve.rs` does.
pub(super) fn routes() -> Router<Arc<Shown>> {
    let mut router = Router::new()
        .route("/inspect", redirect())
        .route("/inspect/api/overview", get(overview))
        .route("/inspect/api/informer", get(informer))
        .route("/inspect/api/objects", get(objects))
        .route("/inspect/api/object", get(object));
    for (name, content_type, text) in FILES {
        let content_type = format!("{content_type}; charset=utf-8");
        router = router.route(&format!("/inspect/{name}"), get(([(CONTENT_TYPE, content_type)], text)));
    }
    router
}

pub(super) fn redirect() -> MethodRouter<Arc<Shown>> {
    get((StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "inspect/")]))
}

async fn overview(State(shown): State<Arc<Shown>>) -> Response {
    blocking(shown, |shown| Ok(shown.overview())).await
}

async fn informer(State(shown): State<Arc<Shown>>, RawQuery(query): RawQuery) -> Response {
    let parameters = Parameters::new(query);
    blocking(shown, move |shown| Ok(find(shown, &parameters)?.details(&shown.mask))).await
}

async fn objects(State(shown): State<Arc<Shown>>, RawQuery(query): RawQuery) -> Response {
    let parameters = Parameters::new(query);
    let searches = Arc::clone(&shown.searches);
    // The semaphore is never closed, so an error can't occur. After an error, the search would run
    // without a permit.
    let permit = searches.acquire_owned().await.ok();
    blocking(shown, move |shown| {
        // The permit moves into the search, because the search continues if the reader disconnects.
        let _permit = permit;
        page(shown, &parameters)
    })
    .await
}

async fn object(State(shown): State<Arc<Shown>>, RawQuery(query): RawQuery) -> Response {
    let parameters = Parameters::new(query);
    blocking(shown, move |shown| one(shown, &parameters)).await
}

/// Runs a slow function on the blocking thread pool, so that it does not delay the runtime.
async fn blocking(shown: Arc<Shown>, function: impl FnOnce(&Shown) -> Answer + Send + 'static) -> Response {
    let answer = tokio::task::spawn_blocking(move || function(&shown)).await;
    match answer {
        Ok(Ok(document)) => {
            ([(CONTENT_TYPE, "application/json; charset=utf-8")], document.to_string()).into_response()
        }
        Ok(Err((status, message))) => (status, message).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the inspector panicked".to_owned()).into_response(),
    }
}

struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn new(query: Option<String>) -> Self {
        let pairs = query.unwrap_or_default();
        Self(form_urlencoded::parse(pairs.as_bytes()).into_owned().collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn required(&self, name: &str) -> Result<&str, (StatusCode, String)> {
        self.get(name).ok_or_else(|| bad(format!("the parameter {name} is missing")))
    }
}

fn bad(message: String) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, message)
}

fn missing(message: String) -> (StatusCode, String) {
    (StatusCode::NOT_FOUND, message)
}

fn find<'a>(shown: &'a Shown, parameters: &Parameters) -> Result<Informer<'a>, (StatusCode, String)> {
    let id = parameters.required("informer")?;
    let found = shown.informers().into_iter().find(|informer| informer.id == id);
    found.ok_or_else(|| missing(format!("there is no informer {id:?}; it was stopped or never requested")))
}

fn view<'a>(informer: &Informer<'a>) -> Result<&'a View, (StatusCode, String)> {
    let reason =
        "the program does not show the objects of this informer: add the informer with Inspector::objects";
    informer.view.ok_or_else(|| missing(reason.to_owned()))
}

/// Returns the JSON document with one page of the objects that match the request's search text.
fn page(shown: &Shown, parameters: &Parameters) -> Answer {
    let informer = find(shown, parameters)?;
    let view = view(&informer)?;
    let query = Query::parse(parameters.get("query").unwrap_or_default()).map_err(bad)?;
    let limit = match parameters.get("limit") {
        Some(limit) => limit.parse().map_err(|_| bad(format!("invalid limit {limit:?}: not a number")))?,
        None => DEFAULT_LIMIT,
    };
    let limit = limit.clamp(1, MAX_LIMIT);
    let page = search(view, &query, &shown.mask, parameters.get("after"), limit).map_err(bad)?;
    let rows = page.objects.iter().map(|object| {
        let facts = view.informer.facts(object);
        let labels = facts.labels.into_iter().filter(|(name, _)| !shown.mask.hides_label(name));
        let labels: serde_json::Map<_, _> = labels.map(|(name, value)| (name, value.into())).collect();
        json!({
            "key": object.key().as_str(),
            "resourceVersion": object.resource_version().to_string(),
            "created": facts.created,
            "labels": labels,
        })
    });
    Ok(json!({
        "objects": rows.collect::<Vec<_>>(),
        "next": page.next.as_ref().map(ToString::to_string),
        "matches": page.matches,
        "candidates": page.candidates,
        "examined": page.examined,
        "total": view.indexer.len(),
        "indexes": view.searchable_indexes(&shown.mask),
    }))
}

/// Returns the JSON document with one object and its last changes. The object is missing if it was
/// deleted.
fn one(shown: &Shown, parameters: &Parameters) -> Answer {
    let informer = find(shown, parameters)?;
    let view = view(&informer)?;
    let key = parameters.required("key")?;
    let object = view.indexer.get_by_key(key);
    let changes = view.changes.of(key);
    if object.is_none() && changes.is_empty() {
        return Err(missing(format!("the store has no object {key:?}")));
    }
    let failed = |error| (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot serialize {key:?}: {error}"));
    let value = object.as_ref().map(|object| view.masked(object, &shown.mask)).transpose().map_err(failed)?;
    let changes: Result<Vec<_>, _> = changes.iter().map(|change| described(shown, view, change)).collect();
    Ok(json!({
        "key": key,
        "resourceVersion": object.as_ref().map(|object| object.resource_version().to_string()),
        "uid": object.as_ref().map(|object| object.uid().to_string()),
        "encoded": object.as_ref().map(Cached::is_encoded),
        "value": value,
        "changes": changes.map_err(failed)?,
    }))
}

fn described(shown: &Shown, view: &View, change: &Change) -> Result<Value, serde_json::Error> {
    let value = |state: &Option<Cached<AnyObject>>| {
        state.as_ref().map(|state| view.informer.unmasked(state)).transpose()
    };
    let version =
        |state: &Option<Cached<AnyObject>>| state.as_ref().map(|state| state.resource_version().to_string());
    // Only an update has two states to compare.
    let differences = match (value(&change.old)?, value(&change.new)?) {
        (Some(old), Some(new)) => diff(&old, &new, &shown.mask.of(&[&old, &new], view.informer.is_secret())),
        _ => Vec::new(),
    };
    Ok(json!({
        "kind": change.kind,
        "ageMs": ms(change.at.elapsed()),
        "from": version(&change.old),
        "to": version(&change.new),
        "differences": differences,
    }))
}
