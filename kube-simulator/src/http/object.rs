//! Requests to single objects and their subresources.

use http::StatusCode;
use serde_json::Value;

use super::call::Call;
use super::respond::{self, HttpResponse};
use super::route::Subresource;
use super::{collection, unchecked, unknown_fields};
use crate::api::catalogue::Served;
use crate::api::list::ListOptions;
use crate::api::status::{self, FieldError, Refusal};
use crate::api::writes::{Outcome, Part, Patch, Rescale, Writer};
use crate::http::request::Verb;
use crate::kinds::ResourceKind;

/// The object or the subresource that a request addresses.
pub(super) struct Target<'a> {
    pub(super) served: &'a Served,
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
    pub(super) subresource: Subresource,
}

pub(super) async fn answer(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    match (target.subresource, call.recorded.verb) {
        (Subresource::Whole | Subresource::Status, Verb::Get) => get(call, target).await,
        // A real server ignores the name in the path.
        (Subresource::Whole, Verb::Create) if !target.served.kind.is_built_in() => {
            collection::create(call, target.served, target.namespace)
        }
        (Subresource::Whole, Verb::Update) => update(call, target, Part::Main),
        (Subresource::Whole, Verb::Patch) => patch(call, target, Part::Main),
        (Subresource::Whole, Verb::Delete) => delete(call, target),
        (Subresource::Status, Verb::Update) => update(call, target, Part::Status),
        (Subresource::Status, Verb::Patch) => patch(call, target, Part::Status),
        (Subresource::Finalize, Verb::Update) => update(call, target, Part::Finalizers),
        (Subresource::Scale, Verb::Get | Verb::Update | Verb::Patch) => scale(call, target),
        (Subresource::Binding, Verb::Create) => {
            call.check_options("CreateOptions")?;
            let binding = Value::Object(call.object("Binding")?);
            target.writer(call).bind(target.name, &binding)?;
            Ok(respond::done(StatusCode::CREATED, call.accepted.encoding))
        }
        (Subresource::Eviction, Verb::Create) => {
            call.check_options("CreateOptions")?;
            let eviction = Value::Object(call.object("Eviction")?);
            target.writer(call).evict(target.name, &eviction)?;
            Ok(respond::done(StatusCode::CREATED, call.accepted.encoding))
        }
        // A real server reports the object, and not the subresource, as missing.
        (Subresource::Missing, _) => Err(status::not_found(&target.served.kind, target.name)),
        (_, verb) => Err(unsupported(&target.served.kind, verb)),
    }
}

/// Returns the error for a verb that the collection, object or subresource does not support.
pub(super) fn unsupported(kind: &ResourceKind, verb: Verb) -> Refusal {
    match verb {
        _ if kind.is_built_in() => status::method_not_allowed(),
        Verb::Create => status::unsupported_verb(kind, "create"),
        Verb::Delete => status::unsupported_verb(kind, "delete"),
        // A real server has no verb for an unknown HTTP method.
        _ => status::unsupported_verb(kind, ""),
    }
}

impl Target<'_> {
    fn writer<'a>(&'a self, call: &'a Call) -> Writer<'a> {
        call.writer(self.served, self.namespace)
    }
}

async fn get(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    let version = ListOptions::version_of_get(&call.recorded.query)?;
    let (table, key) = (&target.served.table, target.served.kind.key(target.namespace, target.name));
    let found = match version {
        // Without a ready watch cache, a real server reads the object from etcd.
        Some(version) if !target.served.kind.is_cached() || call.revision.watch_cache().check().is_err() => {
            call.revision.check_stored(version)?;
            table.get(&key)
        }
        Some(version) => {
            call.revision.reach(version).await?;
            table.get_at(&key, call.revision.cached_state())?
        }
        None => table.get(&key),
    };
    let object = found.ok_or_else(|| status::not_found(&target.served.kind, target.name))?;
    call.accepted.check_plurality(&target.served.kind, false)?;
    Ok(respond::object(StatusCode::OK, &object, call.shape(target.served)?, call.takes_gzip()))
}

fn update(call: &Call, target: &Target<'_>, part: Part) -> Result<HttpResponse, Refusal> {
    call.check_options("UpdateOptions")?;
    let body = call.object(&target.served.kind.kind)?;
    let warnings = unknown_fields::check(call, &target.served.kind, &body)?;
    let outcome = target.writer(call).update(target.name, body, part)?;
    written(call, target.served, &outcome, warnings)
}

fn patch(call: &Call, target: &Target<'_>, part: Part) -> Result<HttpResponse, Refusal> {
    let patch = checked_patch(call, target)?;
    let mut warnings = Vec::new();
    let outcome = target.writer(call).patch(target.name, &patch, part, |patched| {
        warnings = unknown_fields::check_patched(call, &target.served.kind, patched)?;
        Ok(())
    })?;
    written(call, target.served, &outcome, warnings)
}

fn checked_patch(call: &Call, target: &Target<'_>) -> Result<Patch, Refusal> {
    call.check_options("PatchOptions")?;
    let patch = call.patch(&target.served.kind)?;
    if call.recorded.parameter("force").is_some() && !matches!(patch, Patch::Apply(_)) {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(status::invalid("meta.k8s.io", "PatchOptions", "", vec![error]));
    }
    Ok(patch)
}

/// Returns the response to a create, an update or a patch, with the given warnings and those about
/// unchecked rules.
pub(super) fn written(
    call: &Call,
    served: &Served,
    outcome: &Outcome,
    warnings: Vec<String>,
) -> Result<HttpResponse, Refusal> {
    let code = if matches!(outcome, Outcome::Created(_)) { StatusCode::CREATED } else { StatusCode::OK };
    let (shape, gzip) = (call.shape(served)?, call.takes_gzip());
    let response = respond::object(code, outcome.object(), shape, gzip);
    Ok(unchecked::warn(response, warnings, &served.kind, outcome.object()))
}

fn delete(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    let kind = &target.served.kind;
    let options = call.delete_options()?;
    let mut writer = target.writer(call);
    writer.options.dry_run = options.is_dry_run();
    match writer.delete(target.name, &options)? {
        Outcome::Removed { object: last, .. } if !kind.returns_deleted => {
            let deleted = status::deleted(kind, target.name, &last.uid);
            Ok(respond::status(&deleted, call.accepted.encoding))
        }
        outcome => {
            let is_pending = matches!(outcome, Outcome::Stored { .. });
            let cascades = options.orphan_dependents == Some(false);
            let code = if is_pending && cascades { StatusCode::ACCEPTED } else { StatusCode::OK };
            let (shape, gzip) = (call.shape(target.served)?, call.takes_gzip());
            Ok(respond::object(code, outcome.object(), shape, gzip))
        }
    }
}

fn scale(call: &Call, target: &Target<'_>) -> Result<HttpResponse, Refusal> {
    let writer = target.writer(call);
    let scale = match call.recorded.verb {
        Verb::Get => writer.scale(target.name)?,
        Verb::Update => {
            call.check_options("UpdateOptions")?;
            writer.rescale(target.name, Rescale::Put(&call.object("Scale")?))?
        }
        _ => writer.rescale(target.name, Rescale::Patch(&checked_patch(call, target)?))?,
    };
    Ok(respond::value(StatusCode::OK, call.accepted.encoding, &scale))
}
