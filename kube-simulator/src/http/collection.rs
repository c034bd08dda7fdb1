//! Requests to collections: list, watch, create, and deletecollection.

use std::sync::Arc;

use super::call::Call;
use super::respond::{self, HttpResponse};
use super::{object, unknown_fields};
use crate::api::catalogue::Served;
use crate::api::list::{self, ListOptions, Source};
use crate::api::selector::Filter;
use crate::api::status::{self, Refusal};
use crate::api::writes::WriteSource;
use crate::http::request::Verb;
use crate::http::watch::{self, Framing, Opening};

/// Returns whether a query requests a watch; `false` for an invalid query.
pub(super) fn is_watch_requested(query: &str) -> bool {
    ListOptions::parse(query).is_ok_and(|options| options.watch)
}

pub(super) async fn answer(
    call: &Call,
    served: &Arc<Served>,
    namespace: Option<&str>,
) -> Result<HttpResponse, Refusal> {
    match call.recorded.verb {
        Verb::List => list(call, served, namespace).await,
        Verb::Watch => watch(call, served, namespace).await,
        // For custom resources, a real server does not know this path in requests that write.
        _ if served.kind.namespaced && namespace.is_none() && !served.kind.is_built_in() => {
            Ok(respond::page_not_found())
        }
        Verb::Create | Verb::DeleteCollection if served.kind.namespaced && namespace.is_none() => {
            Err(status::method_not_allowed())
        }
        // Deleting all namespaces would empty the cluster.
        Verb::DeleteCollection if served.kind.is_namespace() => Err(status::method_not_allowed()),
        Verb::Create => create(call, served, namespace),
        Verb::DeleteCollection => delete(call, served, namespace).await,
        Verb::Update | Verb::Patch if !served.kind.is_built_in() => {
            Err(status::bad_request("name must be provided"))
        }
        verb => Err(object::unsupported(&served.kind, verb)),
    }
}

async fn list(call: &Call, served: &Served, namespace: Option<&str>) -> Result<HttpResponse, Refusal> {
    let options = ListOptions::parse(&call.recorded.query)?;
    let filter = filter(served, namespace, &options)?;
    call.accepted.check_plurality(&served.kind, true)?;
    let list = list::list(source(call, served), &filter, &options).await?;
    Ok(respond::list(list, call.shape(served)?, call.takes_gzip()))
}

async fn watch(call: &Call, served: &Arc<Served>, namespace: Option<&str>) -> Result<HttpResponse, Refusal> {
    let server = &call.server;
    let mut options = ListOptions::parse(&call.recorded.query)?;
    server.settings.watch_rules.streaming_lists.adjust(&mut options);
    call.accepted.check_watchable(server.settings.cbor)?;
    let opening = Opening {
        table: served.table.clone(),
        // For a kind that is not in the watch cache, the watch reads from etcd, which never lags.
        revision: if served.kind.is_cached() { &call.revision } else { &server.api.revision }.clone(),
        registry: server.watches.clone(),
        request: call.recorded.clone(),
        filter: filter(served, namespace, &options)?,
        framing: Framing::new(call.shape(served)?, call.one_by_one),
        rules: server.settings.watch_rules,
        default_timeout: server.api.draw_watch_timeout(),
        random: server.api.fork_random(),
        stop: server.watch_stop(),
        gone: served.gone.clone(),
    };
    let compresses = server.settings.compressed_streams && !call.one_by_one;
    let compressed = options.is_streaming_list() && compresses && call.takes_gzip();
    Ok(respond::watch(watch::open(opening, &options).await?, call.accepted.encoding, compressed))
}

pub(super) fn create(call: &Call, served: &Served, namespace: Option<&str>) -> Result<HttpResponse, Refusal> {
    call.check_options("CreateOptions")?;
    let body = call.object(&served.kind.kind)?;
    let warnings = unknown_fields::check(call, &served.kind, &body)?;
    let created = call.writer(served, namespace).create(body, WriteSource::Client)?;
    object::written(call, served, &created, warnings)
}

/// Deletes the selected objects one by one. As on a real server, other writes can happen in
/// between.
async fn delete(call: &Call, served: &Served, namespace: Option<&str>) -> Result<HttpResponse, Refusal> {
    let delete_options = call.delete_options()?;
    let options = ListOptions::parse(&call.recorded.query)?;
    let filter = filter(served, namespace, &options)?;
    let list = list::list(source(call, served), &filter, &options).await?;
    for object in &list.objects {
        let mut writer = call.writer(served, object.namespace());
        writer.options.dry_run = delete_options.is_dry_run();
        match writer.delete(object.name(), &delete_options) {
            // Another client may have deleted the object in the meantime.
            Err(refusal) if !refusal.is_not_found() => return Err(refusal),
            _ => {}
        }
    }
    Ok(respond::list(list, call.shape(served)?, call.takes_gzip()))
}

fn source<'a>(call: &'a Call, served: &'a Served) -> Source<'a> {
    let late = call.server.settings.late_lists;
    Source { table: &served.table, revision: &call.revision, late }
}

fn filter(served: &Served, namespace: Option<&str>, options: &ListOptions) -> Result<Filter, Refusal> {
    Filter::parse(served, namespace, &options.label_selector, &options.field_selector)
}
