//! Deletes objects.
//!
//! An object is removed at once unless a finalizer or a kubelet blocks the removal, or the object
//! is a namespace. Such an object is marked with a deletion timestamp, and removed later.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::identity::unknown_kind;
use super::namespace::{check_deletable, spec_finalizers};
use super::{
    Body, Outcome, Writer, finalizers, in_seconds, metadata_mut, metadata_str, object_mut, set_finalizers,
};
use crate::api::custom;
use crate::api::list::parse_bool;
use crate::api::numbers::parse_int;
use crate::api::status::{self, FieldError, Refusal};
use crate::kinds::ResourceKind;
use crate::storage::Object;

/// The finalizer for foreground deletion. The owner is removed only after all dependants with
/// `blockOwnerDeletion`.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer for deletion with the policy `Orphan`. The owner is removed only when no dependant
/// has an owner reference to it any more.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer of a custom resource definition whose objects are being deleted.
pub(crate) const CUSTOM_RESOURCES: &str = "customresourcecleanup.apiextensions.k8s.io";

const OPTIONS: &str = "DeleteOptions";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    preconditions: Preconditions,
    pub(crate) dry_run: Vec<String>,
    pub(crate) propagation_policy: Option<Propagation>,
    /// The deprecated form of `propagation_policy`.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) grace_period_seconds: Option<i64>,
}

/// The effect of a delete on dependants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Propagation {
    fn parse(text: &str) -> Result<Self, Refusal> {
        match text {
            "Background" => Ok(Self::Background),
            "Foreground" => Ok(Self::Foreground),
            "Orphan" => Ok(Self::Orphan),
            _ => {
                let supported = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                let error = FieldError::unsupported("propagationPolicy", text, supported);
                Err(status::invalid("meta.k8s.io", OPTIONS, "", vec![error]))
            }
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    /// Parses the body, or the query if the body is empty.
    pub(crate) fn parse(body: &[u8], query: &str) -> Result<Self, Refusal> {
        if body.is_empty() { Self::from_query(query) } else { Self::from_body(body) }
    }

    fn from_body(body: &[u8]) -> Result<Self, Refusal> {
        let undecodable = |error: serde_json::Error| {
            status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        };
        let mut given: Body = serde_json::from_slice(body).map_err(undecodable)?;
        // As in Go, a null field is the same as an absent field.
        given.retain(|_, value| !value.is_null());
        let text = |field: &str| given.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        match text("kind").as_str() {
            "" | "DeleteOptions" => {}
            other => return Err(status::bad_request(unknown_kind(other, &text("apiVersion")))),
        }
        if let Some(policy) = given.get("propagationPolicy").and_then(Value::as_str) {
            Propagation::parse(policy)?;
        }
        let options: Self = serde_json::from_value(given.into()).map_err(undecodable)?;
        options.validate()?;
        Ok(options)
    }

    fn from_query(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "propagationPolicy" => options.propagation_policy = Some(Propagation::parse(&value)?),
                "orphanDependents" => options.orphan_dependents = Some(parse_bool(&value)),
                "gracePeriodSeconds" => {
                    let seconds = parse_int(&value).map_err(status::bad_request)?;
                    options.grace_period_seconds = Some(seconds);
                }
                "dryRun" => options.dry_run.push(value.into_owned()),
                _ => {}
            }
        }
        options.validate()?;
        Ok(options)
    }

    fn validate(&self) -> Result<(), Refusal> {
        let mut errors = Vec::new();
        if let (Some(policy), Some(_)) = (self.propagation_policy, self.orphan_dependents) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", &format!("\"{policy:?}\""), why));
        }
        if self.dry_run.iter().any(|stage| stage != "All") {
            errors.push(FieldError::unsupported("dryRun", self.dry_run.as_slice(), "\"All\""));
        }
        status::refuse("meta.k8s.io", OPTIONS, "", errors)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.iter().any(|stage| stage == "All")
    }

    /// Returns options with a precondition on the UID and a propagation policy.
    pub(crate) fn of_uid(uid: &str, policy: Propagation) -> Self {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        Self { preconditions, propagation_policy: Some(policy), ..Self::default() }
    }

    /// Returns an error if a precondition does not match the object.
    pub(super) fn check(&self, kind: &ResourceKind, old: &Object) -> Result<(), Refusal> {
        let Preconditions { uid, resource_version } = &self.preconditions;
        let version = old.resource_version.to_string();
        let checks = [
            ("UID", uid.as_deref(), &*old.uid, "deleted and then recreated"),
            ("ResourceVersion", resource_version.as_deref(), version.as_str(), "modified"),
        ];
        for (what, wanted, actual, fate) in checks {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != actual) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). The object \
                     might have been {fate}"
                );
                return Err(status::conflict_of_kind(kind, old.name(), &why));
            }
        }
        Ok(())
    }

    /// Removes the precondition on the resource version.
    pub(super) fn of_any_version(mut self) -> Self {
        self.preconditions.resource_version = None;
        self
    }

    fn policy(&self) -> Option<Propagation> {
        self.propagation_policy.or_else(|| {
            let orphan = self.orphan_dependents?;
            Some(if orphan { Propagation::Orphan } else { Propagation::Background })
        })
    }
}

pub(super) fn delete(writer: &Writer<'_>, name: &str, options: &DeleteOptions) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        options.check(kind, &old)?;
        check_deletable(writer, name)?;
        let mut body = old.decode();
        let now = writer.api.clock.now();
        let Some(ending) = Ending::of(writer, &body, options, now) else {
            return Ok(Outcome::unchanged(old));
        };
        add_required_finalizers(kind, &mut body, options);
        let waits = ending.waits || !finalizers(&body).is_empty() || is_kept_namespace(writer, &body);
        let dry_run = writer.options.dry_run;
        if waits || ending.marks_first {
            mark(kind, &mut body, &ending);
        }
        let is_changed = body != old.decode();
        match (waits, dry_run) {
            (true, _) if !is_changed => Ok(Outcome::unchanged(old)),
            (true, true) => {
                let object = Object::encode(kind, key.clone(), body, old.resource_version);
                Ok(Outcome::Stored { object, before: old })
            }
            (true, false) => Ok(Outcome::Stored { object: transaction.put(&key, body), before: old }),
            (false, true) if ending.marks_first => {
                Ok(Outcome::removed(Object::encode(kind, key.clone(), body, old.resource_version)))
            }
            (false, true) => Ok(Outcome::removed(old)),
            (false, false) if ending.marks_first && is_changed => {
                transaction.put(&key, body.clone());
                Ok(Outcome::removed(transaction.remove(&key, body)))
            }
            (false, false) => Ok(Outcome::removed(transaction.remove(&key, old.decode()))),
        }
    })
}

fn add_required_finalizers(kind: &ResourceKind, body: &mut Body, options: &DeleteOptions) {
    let mut held: Vec<String> = finalizers(body).into_iter().map(str::to_owned).collect();
    // As on a real server, the first delete request ignores the propagation policy.
    if kind.is_definition() && metadata_str(body, "deletionTimestamp").is_none() {
        if !held.iter().any(|finalizer| finalizer == CUSTOM_RESOURCES) {
            held.push(CUSTOM_RESOURCES.to_owned());
        }
        return set_finalizers(metadata_mut(body), held);
    }
    let wanted = match options.policy() {
        Some(Propagation::Foreground) => Some(FOREGROUND),
        Some(Propagation::Orphan) => Some(ORPHAN),
        Some(Propagation::Background) => None,
        None => {
            let before =
                held.iter().find_map(|held| [FOREGROUND, ORPHAN].into_iter().find(|known| held == known));
            before.or(kind.orphans_by_default().then_some(ORPHAN))
        }
    };
    held.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    held.extend(wanted.map(str::to_owned));
    if finalizers(body) != held {
        set_finalizers(metadata_mut(body), held);
    }
}

/// Returns whether the object is a namespace that the delete itself must not remove.
fn is_kept_namespace(writer: &Writer<'_>, body: &Body) -> bool {
    // The first delete request only marks the namespace.
    let is_marked = metadata_str(body, "deletionTimestamp").is_some();
    // The simulated namespace controller removes the namespace later.
    let controlled = writer.api.behavior.controllers;
    writer.served.kind.is_namespace() && (!is_marked || controlled || !spec_finalizers(body).is_empty())
}

/// The deletion timestamp and grace period that a delete request gives an object.
struct Ending {
    /// The deletion timestamp; `None` keeps the previous timestamp.
    at: Option<Timestamp>,
    /// The new `deletionGracePeriodSeconds`.
    seconds: i64,
    /// Whether the grace period blocks the removal, for example until a kubelet removes the object.
    waits: bool,
    /// Whether the deletion timestamp is stored in a separate write before the removal. Watches
    /// then receive `MODIFIED` and `DELETED`.
    marks_first: bool,
}

impl Ending {
    /// Returns the timestamp and the grace period. Returns `None` if the object is in a grace
    /// period that the request does not shorten.
    ///
    /// Counterpart: `BeforeDelete` in `k8s.io/apiserver/pkg/registry/rest`.
    fn of(writer: &Writer<'_>, body: &Body, options: &DeleteOptions, now: Timestamp) -> Option<Self> {
        let wanted = options.grace_period_seconds.map(non_negative);
        let Some(marked) = metadata_str(body, "deletionTimestamp") else {
            let seconds = grace(writer, body, wanted);
            let marks_first = ends_gracefully(writer);
            return Some(Self { at: Some(later(now, seconds)), seconds, waits: seconds > 0, marks_first });
        };
        let end: Timestamp = marked.parse().unwrap_or(now);
        let running = body
            .get("metadata")
            .and_then(|metadata| metadata.get("deletionGracePeriodSeconds")?.as_i64())
            .unwrap_or(0);
        if running == 0 {
            return Some(Self {
                at: (end > now).then_some(now),
                seconds: 0,
                waits: false,
                marks_first: false,
            });
        }
        let wanted = wanted.filter(|seconds| *seconds < running)?;
        let earlier = later(end, wanted.saturating_sub(running));
        // If the shortened grace period is already over, it ends now. A nonzero period is then
        // stored as one second, so that a kubelet still observes the deletion.
        let seconds = if earlier < now { wanted.min(1) } else { wanted };
        Some(Self { at: Some(earlier.max(now)), seconds, waits: wanted > 0, marks_first: true })
    }
}

/// Returns the grace period, or 1 second if it is negative, as the real server does.
fn non_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let moved = time.saturating_add(SignedDuration::from_secs(seconds));
    moved.unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Returns whether the object is a pod and `SimulatorBuilder::graceful_pod_deletion` is set.
fn ends_gracefully(writer: &Writer<'_>) -> bool {
    let kind = &writer.served.kind;
    writer.api.behavior.graceful_pods && kind.kind == "Pod" && kind.group.is_empty()
}

/// Returns the grace period of an object, in seconds. It is 0 unless the object is a scheduled,
/// unfinished pod that [ends gracefully](ends_gracefully). `wanted` is the period in the request.
fn grace(writer: &Writer<'_>, body: &Body, wanted: Option<i64>) -> i64 {
    let spec = body.get("spec");
    let is_scheduled =
        spec.and_then(|spec| spec.get("nodeName")?.as_str()).is_some_and(|node| !node.is_empty());
    let phase = body.get("status").and_then(|status| status.get("phase")?.as_str());
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    if !(ends_gracefully(writer) && is_scheduled) || is_over {
        return 0;
    }
    let usual = || spec.and_then(|spec| spec.get("terminationGracePeriodSeconds")?.as_i64()).unwrap_or(30);
    non_negative(wanted.unwrap_or_else(usual))
}

fn mark(kind: &ResourceKind, body: &mut Body, ending: &Ending) {
    let is_new = metadata_str(body, "deletionTimestamp").is_none();
    let metadata = metadata_mut(body);
    if let Some(at) = ending.at {
        metadata.insert("deletionTimestamp".to_owned(), in_seconds(at).into());
    }
    if kind.is_namespace() {
        object_mut(body, "status").insert("phase".to_owned(), "Terminating".into());
        return;
    }
    if kind.is_definition() && is_new {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        let now = ending.at.map(in_seconds).unwrap_or_default();
        return custom::set_terminating(body, "True", "InstanceDeletionPending", message, &now);
    }
    metadata.insert("deletionGracePeriodSeconds".to_owned(), ending.seconds.into());
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
    if is_new && generation > 0 {
        metadata.insert("generation".to_owned(), generation.wrapping_add(1).into());
    }
}
