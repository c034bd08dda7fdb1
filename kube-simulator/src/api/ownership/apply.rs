//! Server-side apply (KEP-555): a manager sets the fields in its configuration, and gives up the
//! fields that it has applied before and now omits.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::Body;
use super::leaves::{self, Path, leaves, to_fields_v1};
use super::managers::{self, Entry, Manager};
use super::merge::{is_key, merge, remove_all};
use crate::kinds::ResourceKind;

/// When the reported conflicts exceed this total length in bytes, further conflicts are omitted. A
/// real server reports all conflicts.
const MAX_CONFLICTS: usize = 256 * 1024;

/// Maximum number of reported duplicate list elements. A real server reports all of them.
const MAX_DUPLICATES: usize = 100;

/// A field of the applied configuration that another manager owns and that has another value in the
/// stored object.
#[derive(Debug)]
pub(crate) struct Conflict {
    /// The other manager, as in a real server's error message: `"kubectl" using apps/v1`.
    pub(crate) manager: String,
    /// The field in readable form: `.spec.replicas`.
    pub(crate) field: String,
}

/// Applies the configuration `applied` to the object `before`. Without `force`, conflicts are an
/// error. With `force`, the manager takes over the conflicting fields.
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
    let fields: BTreeSet<Path> = wanted.into_keys().collect();
    entries.push(match &own {
        // The entry keeps its time, so that a repeated apply changes nothing.
        Some(own) if own.fields == fields => own.clone(),
        _ => Entry::new(kind, manager, fields),
    });

    let mut after = before.clone();
    let applied_before = own.iter().flat_map(|own| &own.fields);
    let removed = applied_before.filter(|path| !is_owned(&entries, path) && !is_key(path));
    remove_all(&mut after, &to_fields_v1(removed));
    // The removal comes first, because it also removes maps and lists that become empty.
    merge(kind, &mut after, applied);
    managers::write(&mut after, &entries);
    Ok(after)
}

/// Makes the manager the owner of the fields in `owned`, unless one of them has an owner.
pub(crate) fn own_unowned(kind: &ResourceKind, object: &mut Body, owned: &Body, manager: &Manager<'_>) {
    let mut entries = managers::read(object);
    let fields: BTreeSet<Path> = leaves(kind, owned).into_keys().collect();
    if !fields.is_empty() && !fields.iter().any(|path| is_owned(&entries, path)) {
        entries.push(Entry::new(kind, manager, fields));
        managers::write(object, &entries);
    }
}

/// Returns the errors for duplicate list elements, in the format of structured-merge-diff.
pub(crate) fn duplicates(kind: &ResourceKind, applied: &Body) -> Vec<String> {
    let found = leaves::duplicates(kind, applied);
    let described = found.iter().filter_map(|path| {
        let (element, list) = path.split_last()?;
        Some(format!(
            "{}: duplicate entries for key {}",
            format_path(list),
            format_path(std::slice::from_ref(element))
        ))
    });
    described.take(MAX_DUPLICATES).collect()
}

/// Compares paths in the order of the real server's traversal: within one map, leaves come before
/// nested values. One difference: numbers in keys of list elements are compared as text.
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
        let conflict = Conflict { manager: entry.describe(), field: format_path(path) };
        length += conflict.manager.len() + conflict.field.len();
        found.push(conflict);
    }
    found
}

/// Returns whether an entry owns the value at `path`, or a value nested in this value.
fn is_owned(entries: &[Entry], path: &Path) -> bool {
    // The last step `.` means the list element itself. Without this step, the path is also the
    // start of the paths of the element's fields.
    let within = match path.as_slice() {
        [within @ .., last] if **last == *"." => within,
        whole => whole,
    };
    // Fields are sorted, so the paths that begin with `within` directly follow it.
    entries.iter().any(|entry| {
        let mut from_there = entry.fields.range::<[Arc<str>], _>((Included(within), Unbounded));
        from_there.next().is_some_and(|owned| owned.starts_with(within))
    })
}

/// Formats a path as `.spec.containers[name="main"].image`.
fn format_path(path: &[Arc<str>]) -> String {
    let mut formatted = String::new();
    for step in path {
        match step.split_once(':') {
            Some(("f", field)) => {
                formatted.push('.');
                formatted.push_str(field);
            }
            Some(("k", keys)) => {
                let keys: Body = serde_json::from_str(keys).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                formatted.push_str(&format!("[{}]", pairs.join(",")));
            }
            Some((_, value)) => formatted.push_str(&format!("[={value}]")),
            None => {}
        }
    }
    formatted
}
