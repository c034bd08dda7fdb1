//! Server-side apply (KEP-555): a manager says what it wants of an object, and nothing of the rest.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::Body;
use super::leaves::{self, Path, leaves, to_fields_v1};
use super::managers::{self, Entry, Manager};
use super::merge::{is_key, merge, remove_all};
use crate::resource::ResourceKind;

/// Maximum length of the conflicts that an answer lists, in bytes. A real server lists all.
const MAX_CONFLICTS: usize = 256 * 1024;

/// Maximum number of elements that an answer names because they are there twice. A real server names all.
const MAX_DUPLICATES: usize = 100;

/// A field that somebody else owns, with another value.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// Who it is, as the real server says it.
    pub(crate) manager: String,
    /// As people write it: `.spec.replicas`.
    pub(crate) field: String,
}

/// Applies a configuration to an object, which may be empty.
///
/// What the manager has applied before and does not now is taken out unless others own it, too. Fields that others own
/// with another value are conflicts; with `force` the manager takes them over.
pub(crate) fn apply(
    kind: &ResourceKind,
    before: &Body,
    applied: &Body,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Body, Vec<Conflict>> {
    let mut entries = managers::read(before);
    let wanted = leaves(kind, applied);
    let there = leaves(kind, before);
    let conflicting: BTreeSet<&Path> = wanted
        .iter()
        .filter(|(path, value)| there.get(*path) != Some(*value))
        .map(|(path, _)| path)
        .collect();
    let conflicts = conflicts(&entries, manager, &conflicting);
    if !force && !conflicts.is_empty() {
        return Err(conflicts);
    }
    for entry in entries.iter_mut().filter(|entry| !entry.is_of(manager)) {
        entry.fields.retain(|path| !conflicting.contains(path));
    }
    let own = entries.iter().position(|entry| entry.is_of(manager)).map(|at| entries.remove(at));

    let mut after = before.clone();
    merge(kind, &mut after, applied);
    let given_up = own.iter().flat_map(|own| &own.fields).filter(|path| !wanted.contains_key(*path));
    let removed = given_up.filter(|path| !owned(&entries, path) && !is_key(path));
    remove_all(&mut after, &to_fields_v1(removed));
    let fields: BTreeSet<Path> = wanted.into_keys().collect();
    entries.push(match own {
        // So that applying the same once more changes nothing.
        Some(own) if own.fields == fields => own,
        _ => Entry::new(kind, manager, fields),
    });
    managers::write(&mut after, &entries);
    Ok(after)
}

/// Returns what is wrong with the lists of a configuration, in the words of structured-merge-diff: an element that is
/// there more than once can't be owned.
pub(crate) fn duplicates(kind: &ResourceKind, applied: &Body) -> Vec<String> {
    let found = leaves::duplicates(kind, applied);
    let described = found.iter().filter_map(|path| {
        let (element, list) = path.split_last()?;
        Some(format!("{}: duplicate entries for key {}", spell(list), spell(std::slice::from_ref(element))))
    });
    described.take(MAX_DUPLICATES).collect()
}

/// Compares paths as the real server goes through them: of what is in one map, the leaves come first.
fn in_order_of_walk(left: &Path, right: &Path) -> Ordering {
    let differ = left.iter().zip(right).position(|(left, right)| left != right);
    let at = differ.unwrap_or(left.len().min(right.len()));
    let inner = |path: &Path| path.len() > at + 1;
    inner(left).cmp(&inner(right)).then_with(|| left[at..].cmp(&right[at..]))
}

fn conflicts(entries: &[Entry], manager: &Manager<'_>, paths: &BTreeSet<&Path>) -> Vec<Conflict> {
    let others = entries.iter().filter(|entry| !entry.is_of(manager));
    let all = others.flat_map(|entry| {
        let mut fields: Vec<&Path> = entry.fields.iter().filter(|path| paths.contains(path)).collect();
        fields.sort_by(|left, right| in_order_of_walk(left, right));
        fields.into_iter().map(move |path| (entry, path))
    });
    let (mut found, mut length) = (Vec::new(), 0);
    for (entry, path) in all {
        if length > MAX_CONFLICTS {
            break;
        }
        let conflict = Conflict { manager: entry.describe(), field: spell(path) };
        length += conflict.manager.len() + conflict.field.len();
        found.push(conflict);
    }
    found
}

/// Returns whether somebody owns a leaf, or something within an element of a list.
fn owned(entries: &[Entry], path: &Path) -> bool {
    let within = match path.as_slice() {
        [within @ .., last] if **last == *"." => within,
        whole => whole,
    };
    // Fields are in order, so those that begin with a path follow it directly.
    entries.iter().any(|entry| {
        let mut from_there = entry.fields.range::<[Arc<str>], _>((Included(within), Unbounded));
        from_there.next().is_some_and(|owned| owned.starts_with(within))
    })
}

/// Writes a path as people do: `.spec.containers[name="main"].image`.
fn spell(path: &[Arc<str>]) -> String {
    let mut spelled = String::new();
    for step in path {
        match step.split_once(':') {
            Some(("f", field)) => {
                spelled.push('.');
                spelled.push_str(field);
            }
            Some(("k", keys)) => {
                let keys: Body = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                spelled.push_str(&format!("[{}]", pairs.join(",")));
            }
            Some((_, value)) => spelled.push_str(&format!("[={value}]")),
            None => {}
        }
    }
    spelled
}
