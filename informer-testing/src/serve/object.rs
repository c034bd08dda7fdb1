//! Requests to single objects: get, update, patch and delete.

use http::StatusCode;

use super::respond::{self, HttpResponse};
use super::service::Call;
use crate::list::ListOptions;
use crate::status::{self, Refusal};
use crate::storage::Table;
use crate::writes::{self, DeleteOptions, Outcome, Part, Patch};

/// The object that a request is about.
pub(super) struct Target<'a> {
    pub(super) table: &'a Table,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) part: Part,
}

impl Target<'_> {
    fn key(&self) -> String {
        self.table.kind.key(self.namespace, self.name)
    }
}

pub(super) async fn get(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    if let Some(version) = ListOptions::version_of_get(&call.recorded.query)? {
        call.server.revision.reach(version).await?;
    }
    let found = target.table.get(&target.key());
    let object = found.ok_or_else(|| status::not_found(&target.table.kind, target.name))?;
    Ok(respond::object(StatusCode::OK, &object, call.shape))
}

pub(super) fn update(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    let Target { table, namespace, name, part } = target;
    let outcome = writes::update(table, *namespace, name, call.object()?, *part, call.is_dry_run())?;
    Ok(respond::object(StatusCode::OK, &outcome.into_object(), call.shape))
}

pub(super) fn patch(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    let Target { table, namespace, name, part } = target;
    let patch = Patch::parse(&table.kind, call.content_type(), &call.body)?;
    let outcome = writes::patch(table, *namespace, name, &patch, *part, call.is_dry_run())?;
    Ok(respond::object(StatusCode::OK, &outcome.into_object(), call.shape))
}

pub(super) fn delete(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    if target.part != Part::Main {
        return Err(status::method_not_allowed());
    }
    let kind = &target.table.kind;
    let mut options = DeleteOptions::parse(&call.body)?;
    if call.is_dry_run() {
        options.dry_run.push("All".to_owned());
    }
    match writes::delete(target.table, &target.key(), &options, &call.server.stamp())? {
        Outcome::Removed(last) if !kind.returns_deleted => {
            Ok(respond::status(&status::deleted(kind, target.name, &last.uid)))
        }
        outcome => Ok(respond::object(StatusCode::OK, &outcome.into_object(), call.shape)),
    }
}
