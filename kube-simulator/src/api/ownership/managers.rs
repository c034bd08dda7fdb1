//! `metadata.managedFields`: the entries of an object's managers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Body;
use super::leaves::{Path, from_fields_v1, leaves, to_fields_v1};
use crate::kinds::ResourceKind;

/// The operation of a field manager. The applies and the updates of one manager are recorded in
/// separate entries of `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// A manager and the time of its write.
#[derive(Clone, Debug)]
pub(crate) struct Manager<'a> {
    pub(crate) name: &'a str,
    pub(crate) operation: Operation,
    /// The written subresource, such as `status`. Empty for a write to the object itself.
    pub(crate) subresource: &'a str,
    pub(crate) now: &'a str,
}

/// An entry of `managedFields`: a manager and the fields that it owns.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    name: String,
    operation: String,
    subresource: String,
    api_version: String,
    time: String,
    pub(super) fields: BTreeSet<Path>,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

impl Entry {
    pub(super) fn new(kind: &ResourceKind, manager: &Manager<'_>, fields: BTreeSet<Path>) -> Self {
        Self {
            name: manager.name.to_owned(),
            operation: manager.operation.name().to_owned(),
            subresource: manager.subresource.to_owned(),
            api_version: kind.api_version(),
            time: manager.now.to_owned(),
            fields,
        }
    }

    pub(super) fn describe(&self) -> String {
        let subresource = match self.subresource.as_str() {
            "" => String::new(),
            subresource => format!(" with subresource {subresource:?}"),
        };
        let version = if self.operation == Operation::Update.name() {
            format!(" using {}", self.api_version)
        } else {
            String::new()
        };
        format!("{:?}{subresource}{version}", self.name)
    }

    pub(super) fn is_of(&self, manager: &Manager<'_>) -> bool {
        self.name == manager.name
            && self.operation == manager.operation.name()
            && self.subresource == manager.subresource
    }
}

pub(super) fn read(body: &Body) -> Vec<Entry> {
    let listed = body.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entries = listed.and_then(Value::as_array).into_iter().flatten();
    entries
        .map(|entry| Entry {
            name: text(&entry["manager"]),
            operation: text(&entry["operation"]),
            subresource: text(&entry["subresource"]),
            api_version: text(&entry["apiVersion"]),
            time: text(&entry["time"]),
            fields: from_fields_v1(&entry["fieldsV1"]),
        })
        .collect()
}

/// Writes the non-empty entries into `managedFields`: first `Apply` and then `Update`, each sorted
/// by time.
pub(super) fn write(body: &mut Body, entries: &[Entry]) {
    let mut entries: Vec<&Entry> = entries.iter().filter(|entry| !entry.fields.is_empty()).collect();
    entries.sort_by_key(|entry| {
        (&entry.operation, &entry.time, &entry.name, &entry.api_version, &entry.subresource)
    });
    let listed: Vec<Value> = entries
        .into_iter()
        .map(|entry| {
            let mut written = json!({
                "manager": entry.name,
                "operation": entry.operation,
                "apiVersion": entry.api_version,
                "time": entry.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": to_fields_v1(&entry.fields),
            });
            if !entry.subresource.is_empty() {
                written["subresource"] = entry.subresource.as_str().into();
            }
            written
        })
        .collect();
    let Some(Value::Object(metadata)) = body.get_mut("metadata") else {
        return;
    };
    if listed.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), listed.into());
    }
}

/// Records a write in `managedFields`: the manager becomes the only owner of the changed fields.
/// For a new object, `before` is empty. Not recorded: an update of an object without owners, and a
/// change of unowned replicas through `/scale`.
pub(crate) fn record_write(kind: &ResourceKind, before: &Body, after: &mut Body, manager: &Manager<'_>) {
    let (old, new) = (leaves(kind, before), leaves(kind, after));
    let differs = |path: &&Path| old.get(*path) != new.get(*path);
    let changed: BTreeSet<Path> = new.keys().filter(differs).cloned().collect();
    let gone: BTreeSet<Path> = old.keys().filter(|path| !new.contains_key(*path)).cloned().collect();
    // A client can send other owners. A write to a subresource ignores them.
    let sent = managed_fields(after)
        .filter(|sent| manager.subresource.is_empty() && Some(*sent) != managed_fields(before));
    if sent.is_none() && changed.is_empty() && gone.is_empty() {
        restore(before, after);
        return;
    }
    let mut entries = match sent {
        // The client removes all owners.
        Some(sent) if sent.is_empty() || sent == [json!({})] => Vec::new(),
        Some(_) => read(after),
        None => read(before),
    };
    let is_update = !before.is_empty();
    let is_unowned = match manager.subresource {
        "scale" => entries.iter().all(|entry| entry.fields.is_disjoint(&changed)),
        _ => entries.is_empty(),
    };
    // Writes to an object without owners are recorded only after the first server-side apply.
    if is_update && is_unowned {
        write(after, &entries);
        return;
    }
    for entry in &mut entries {
        entry.fields.retain(|path| !gone.contains(path) && !changed.contains(path));
    }
    if !changed.is_empty() {
        match entries.iter_mut().find(|entry| entry.is_of(manager)) {
            Some(own) => {
                own.fields.extend(changed);
                own.time = manager.now.to_owned();
                own.api_version = kind.api_version();
            }
            None => entries.push(Entry::new(kind, manager, changed)),
        }
    }
    write(after, &entries);
}

pub(crate) fn has_owners(body: &Body) -> bool {
    managed_fields(body).is_some_and(|entries| !entries.is_empty())
}

fn managed_fields(body: &Body) -> Option<&[Value]> {
    Some(body.get("metadata")?.get("managedFields")?.as_array()?.as_slice())
}

/// Copies the stored `managedFields` to the new version.
fn restore(before: &Body, after: &mut Body) {
    let kept = managed_fields(before).map(<[Value]>::to_vec);
    if let Some(Value::Object(metadata)) = after.get_mut("metadata") {
        match kept {
            Some(kept) => metadata.insert("managedFields".to_owned(), kept.into()),
            None => metadata.remove("managedFields"),
        };
    }
}
