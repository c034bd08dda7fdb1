//! Deleting objects.
//!
//! A delete takes effect at once unless something holds the object back: a finalizer, the client's wish that dependants
//! go first, the content of a namespace or of a custom resource definition, or a kubelet. Then the object is marked,
//! and goes when what held it back is done.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::identity::no_kind;
use super::namespace::spec_finalizers;
use super::{
    Body, Outcome, Writer, finalizers, in_seconds, metadata_mut, metadata_str, object_mut, set_finalizers,
};
use crate::numbers::parse_int;
use crate::object::Object;
use crate::resource::ResourceKind;
use crate::status::{self, FieldError, Refusal};

/// The finalizer of an owner that waits for its dependants.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an owner whose dependants are to stay.
pub(crate) const ORPHAN: &str = "orphan";

/// The finalizer of a custom resource definition that is being deleted.
pub(crate) const CUSTOM_RESOURCES: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What the options of a delete are called in refusals.
const OPTIONS: &str = "DeleteOptions";

/// What a client may ask of a delete, in its body or query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    preconditions: Preconditions,
    pub(crate) dry_run: Vec<String>,
    pub(crate) propagation_policy: Option<Propagation>,
    /// The old way of saying `Orphan`.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) grace_period_seconds: Option<i64>,
}

/// What is to become of the objects that the deleted one owns.
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
    /// Parses the body of a delete, or where there is none, its query.
    pub(crate) fn parse(body: &[u8], query: &str) -> Result<Self, Refusal> {
        if body.is_empty() { Self::from_query(query) } else { Self::from_body(body) }
    }

    fn from_body(body: &[u8]) -> Result<Self, Refusal> {
        let undecodable = |error: serde_json::Error| {
            status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
        };
        let given: Body = serde_json::from_slice(body).map_err(undecodable)?;
        let text = |field: &str| given.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        match text("kind").as_str() {
            "" | "DeleteOptions" => {}
            other => return Err(status::bad_request(no_kind(other, &text("apiVersion")))),
        }
        if let Some(policy) = given.get("propagationPolicy").and_then(Value::as_str) {
            Propagation::parse(policy)?;
        }
        let options: Self = serde_json::from_value(given.into()).map_err(undecodable)?;
        options.check_one_policy()?;
        if options.dry_run.iter().any(|stage| stage != "All") {
            return Err(status::bad_dry_run(OPTIONS, &options.dry_run));
        }
        Ok(options)
    }

    fn from_query(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "propagationPolicy" => options.propagation_policy = Some(Propagation::parse(&value)?),
                "orphanDependents" => options.orphan_dependents = Some(value == "true"),
                "gracePeriodSeconds" => {
                    let seconds = parse_int(&value).map_err(status::bad_request)?;
                    options.grace_period_seconds = Some(seconds);
                }
                "dryRun" if !matches!(&*value, "" | "All") => {
                    return Err(status::bad_dry_run(OPTIONS, &[value.into_owned()]));
                }
                "dryRun" => options.dry_run.push(value.into_owned()),
                _ => {}
            }
        }
        options.check_one_policy()?;
        Ok(options)
    }

    /// Refuses to be told in the old way and in the new one what is to become of dependants.
    fn check_one_policy(&self) -> Result<(), Refusal> {
        match (self.propagation_policy, self.orphan_dependents) {
            (Some(policy), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                let error = FieldError::invalid("propagationPolicy", &format!("\"{policy:?}\""), why);
                Err(status::invalid("meta.k8s.io", OPTIONS, "", vec![error]))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether nothing is to be deleted.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.iter().any(|stage| stage == "All")
    }

    /// Deletes with this policy.
    pub(crate) fn propagating(policy: Propagation) -> Self {
        Self { propagation_policy: Some(policy), ..Self::default() }
    }

    /// Refuses to delete another object, or another version of it, than the client means.
    pub(super) fn check(&self, kind: &ResourceKind, old: &Object) -> Result<(), Refusal> {
        self.preconditions.check(kind, old)
    }

    /// The same, whatever version the object has by now.
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

/// Deletes an object, or marks it as being deleted.
pub(super) fn delete(writer: &Writer<'_>, name: &str, options: &DeleteOptions) -> Result<Outcome, Refusal> {
    let kind = &*writer.served.kind;
    let key = writer.key(name);
    writer.served.table.write(|transaction| {
        let old = transaction.current(&key).ok_or_else(|| status::not_found(kind, name))?;
        options.check(kind, &old)?;
        let mut body = old.decode();
        let now = writer.server.clock.now();
        let Some(ending) = Ending::of(writer, &body, options, now) else {
            return Ok(Outcome::Stored(old));
        };
        hold(kind, &mut body, options);
        let waits = ending.waits || !finalizers(&body).is_empty() || waits_for_content(writer, &body);
        let dry_run = writer.options.dry_run;
        if waits || ending.is_told {
            mark(kind, &mut body, &ending);
        }
        let is_changed = body != old.decode();
        match (waits, dry_run) {
            (true, _) if !is_changed => Ok(Outcome::Stored(old)),
            (true, true) => {
                Ok(Outcome::Stored(Object::encode(kind, key.clone(), body, old.resource_version)))
            }
            (true, false) => Ok(Outcome::Stored(transaction.put(&key, body))),
            (false, true) if ending.is_told => {
                Ok(Outcome::Removed(Object::encode(kind, key.clone(), body, old.resource_version)))
            }
            (false, true) => Ok(Outcome::Removed(old)),
            (false, false) => {
                if ending.is_told && is_changed {
                    transaction.put(&key, body.clone());
                }
                Ok(Outcome::Removed(transaction.remove(&key, body)))
            }
        }
    })
}

/// Adds and removes the finalizers that follow from the client's wishes and from the kind.
fn hold(kind: &ResourceKind, body: &mut Body, options: &DeleteOptions) {
    let mut held: Vec<String> = finalizers(body).into_iter().map(str::to_owned).collect();
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
    if kind.is_definition() && !held.iter().any(|finalizer| finalizer == CUSTOM_RESOURCES) {
        held.push(CUSTOM_RESOURCES.to_owned());
    }
    if finalizers(body) != held {
        set_finalizers(body, held);
    }
}

/// A namespace is marked first, whatever it holds, and then kept until its spec has no finalizers left; the namespace
/// controller takes its own off when nothing is in it.
fn waits_for_content(writer: &Writer<'_>, body: &Body) -> bool {
    let is_marked = metadata_str(body, "deletionTimestamp").is_some();
    let controlled = writer.server.settings.habits.controllers;
    writer.served.kind.is_namespace() && (!is_marked || controlled || !spec_finalizers(body).is_empty())
}

/// When an object that is being deleted is to have ended.
struct Ending {
    /// None leaves what was said before.
    at: Option<Timestamp>,
    /// Counted from the first delete.
    seconds: i64,
    /// Whether it is somebody else's turn to end it.
    waits: bool,
    /// Whether the object is marked with it before it goes, even if it goes at once.
    is_told: bool,
}

impl Ending {
    /// Returns what a delete makes of an object's ending; none if that stays as it is, because it is no later than what the
    /// delete asks for (`BeforeDelete` in `k8s.io/apiserver/pkg/registry/rest`).
    fn of(writer: &Writer<'_>, body: &Body, options: &DeleteOptions, now: Timestamp) -> Option<Self> {
        let wanted = options.grace_period_seconds.map(positive);
        let Some(marked) = metadata_str(body, "deletionTimestamp") else {
            let seconds = grace(writer, body, wanted);
            let is_told = ends_gracefully(writer);
            return Some(Self { at: Some(later(now, seconds)), seconds, waits: seconds > 0, is_told });
        };
        let end: Timestamp = marked.parse().unwrap_or(now);
        let running = body
            .get("metadata")
            .and_then(|metadata| metadata.get("deletionGracePeriodSeconds")?.as_i64())
            .unwrap_or(0);
        if running == 0 {
            return Some(Self { at: (end > now).then_some(now), seconds: 0, waits: false, is_told: false });
        }
        let wanted = wanted.filter(|seconds| *seconds < running)?;
        let earlier = later(end, wanted.saturating_sub(running));
        // Where all the time is over already, only that is left which a kubelet needs to see it.
        let seconds = if earlier < now { wanted.min(1) } else { wanted };
        Some(Self { at: Some(earlier.max(now)), seconds, waits: wanted > 0, is_told: true })
    }
}

/// Less than no time at all counts as a second.
fn positive(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    let moved = time.saturating_add(SignedDuration::from_secs(seconds));
    moved.unwrap_or(if seconds < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// Returns whether objects of the kind end in two steps, as pods do if the builder asks for it.
fn ends_gracefully(writer: &Writer<'_>) -> bool {
    let kind = &writer.served.kind;
    writer.server.settings.habits.graceful_pods && kind.kind == "Pod" && kind.group.is_empty()
}

/// Returns how many seconds the object is given to end. Only scheduled pods are, and only if the builder asks for it.
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
    positive(wanted.unwrap_or_else(usual))
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
    metadata.insert("deletionGracePeriodSeconds".to_owned(), ending.seconds.into());
    if is_new && kind.counts_generations {
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
        metadata.insert("generation".to_owned(), (generation + 1).into());
    }
}

impl Preconditions {
    fn check(&self, kind: &ResourceKind, old: &Object) -> Result<(), Refusal> {
        let version = old.resource_version.to_string();
        let checks = [
            ("UID", self.uid.as_deref(), &*old.uid, "deleted and then recreated"),
            ("ResourceVersion", self.resource_version.as_deref(), version.as_str(), "modified"),
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
}
