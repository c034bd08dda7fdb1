//! Requests to collections: list, watch, create, and delete of all that match.

use std::sync::Arc;

use http::StatusCode;

use super::respond::{self, HttpResponse};
use super::service::Call;
use crate::list::{self, List, ListOptions};
use crate::selector::Filter;
use crate::status::{self, Refusal};
use crate::storage::Table;
use crate::watch::{self, Opening};
use crate::writes::{self, DeleteOptions, Guard};

/// Tells a watch from a list before the options have been checked.
pub(super) fn asks_to_watch(query: &str) -> bool {
    ListOptions::parse(query).is_ok_and(|options| options.watch)
}

pub(super) async fn list(
    call: &Call,
    table: &Table,
    namespace: Option<&str>,
) -> Result<HttpResponse, Refusal> {
    let options = ListOptions::parse(&call.recorded.query)?;
    let filter = filter(table, namespace, &options)?;
    let list = list::list(table, &call.revision, &filter, &options).await?;
    Ok(respond::list(&table.kind, list, call.shape))
}

pub(super) async fn watch(
    call: &Call,
    table: &Arc<Table>,
    namespace: Option<&str>,
) -> Result<HttpResponse, Refusal> {
    let options = ListOptions::parse(&call.recorded.query)?;
    let server = &call.server;
    let opening = Opening {
        table: table.clone(),
        revision: call.revision.clone(),
        registry: server.watches.clone(),
        request: call.recorded.clone(),
        filter: filter(table, namespace, &options)?,
        shape: call.shape,
        rules: server.settings.watch_rules,
        default_timeout: server.draw_watch_timeout(),
        stop: server.life(),
    };
    Ok(respond::watch(watch::open(opening, &options).await?))
}

pub(super) fn create(call: &Call, table: &Table, namespace: Option<&str>) -> Result<HttpResponse, Refusal> {
    if table.kind.namespaced && namespace.is_none() {
        return Err(status::method_not_allowed());
    }
    let stamp = call.server.stamp();
    let created = writes::create(table, namespace, call.object()?, &stamp, Guard::Client, call.is_dry_run())?;
    Ok(respond::object(StatusCode::CREATED, &created, call.shape))
}

/// Deletes what matches, object by object: others may write in between, as on a real server.
pub(super) async fn delete(
    call: &Call,
    table: &Table,
    namespace: Option<&str>,
) -> Result<HttpResponse, Refusal> {
    if table.kind.namespaced && namespace.is_none() {
        return Err(status::method_not_allowed());
    }
    let delete_options = DeleteOptions::parse(&call.body)?;
    let options = ListOptions::parse(&call.recorded.query)?;
    let filter = filter(table, namespace, &options)?;
    let found = list::list(table, &call.server.revision, &filter, &options).await?;
    let mut deleted = Vec::new();
    for object in found.objects {
        if call.is_dry_run() {
            deleted.push(object);
            continue;
        }
        // What someone else has deleted in the meantime is not there to be deleted.
        if let Ok(outcome) = writes::delete(table, &object.key, &delete_options, &call.server.stamp()) {
            deleted.push(outcome.into_object());
        }
    }
    let list = List {
        objects: deleted,
        resource_version: call.server.revision.current(),
        continue_token: String::new(),
        remaining: None,
    };
    Ok(respond::list(&table.kind, list, call.shape))
}

fn filter(table: &Table, namespace: Option<&str>, options: &ListOptions) -> Result<Filter, Refusal> {
    Filter::parse(&table.kind, namespace, &options.label_selector, &options.field_selector)
}
