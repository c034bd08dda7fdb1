//! Adds a change to the pending changes of one key, and selects the changes that newer changes of
//! the key make obsolete.
//!
//! A requeued item contains the changes of one key that the consumer could not process and has put
//! back into the queue.
//!
//! A removal is a deletion of the object, or a release: the namespace is no longer watched. Of two
//! consecutive removals, only one is kept:
//!
//! - Of a deletion and a release, the deletion.
//! - Of two releases, the later one.
//! - Of two deletions, the earlier one. Exception: the later one if it is that of the same object
//!   (an unknown UID counts as the same) and has the object's final state
//!   ([`Deleted::is_exact`](crate::Deleted::is_exact)), or if the earlier one has no state of the
//!   object.

use smallvec::smallvec;

use crate::{Delta, Deltas};

/// Appends a change to the pending changes of a key. Returns the removal that is not kept, if any.
#[inline(never)] // Otherwise the compiler does not inline the callers.
pub(super) fn append<K>(deltas: &mut Deltas<K>, delta: Delta<K>) -> Option<Delta<K>> {
    match (deltas.last_mut(), delta) {
        (Some(Delta::Deleted(earlier)), Delta::Deleted(later)) => {
            // Between the deletions of two objects, the addition of the second object was left out.
            let is_same = earlier.uid().zip(later.uid()).is_none_or(|(earlier, later)| earlier == later);
            let is_empty = !earlier.is_exact() && earlier.last_known().is_none();
            let later_counts = is_empty || is_same && later.is_exact();
            Some(Delta::Deleted(if later_counts { std::mem::replace(earlier, later) } else { later }))
        }
        (Some(released @ Delta::Released(_)), end) if end.is_end() => Some(std::mem::replace(released, end)),
        (Some(Delta::Deleted(_)), released @ Delta::Released(_)) => Some(released),
        (_, delta) => {
            deltas.push(delta);
            None
        }
    }
}

/// Inserts a removal before the newer pending changes of the same key. Returns the removal that is
/// not kept, if any.
pub(super) fn prepend<K>(deltas: &mut Deltas<K>, removal: Delta<K>) -> Option<Delta<K>> {
    let newer = std::mem::replace(deltas, smallvec![removal]);
    let mut superfluous = None;
    for delta in newer {
        superfluous = append(deltas, delta).or(superfluous);
    }
    superfluous
}

/// Returns the first deletion in `deltas`. If there is no deletion, returns the first release.
///
/// Newer changes of the key replace all changes of a requeued item except this removal. For
/// example, if the item has an update and a deletion, only the deletion is kept.
pub(super) fn first_removal<K>(deltas: &Deltas<K>) -> Option<&Delta<K>> {
    let mut removals = deltas.iter().filter(|delta| delta.is_end());
    // The newer changes can be those of another object with the same key, so the consumer must
    // first receive the removal. A deletion must not become a release.
    removals.clone().find(|delta| delta.is_deleted()).or_else(|| removals.next())
}

/// Removes all changes of a requeued item except the [`first_removal`]. Returns all previous
/// changes, including this removal, of which `deltas` keeps a clone. The caller drops the returned
/// changes while the queue is not locked.
///
/// The caller must then append a newer change, because `deltas` is empty if there was no removal.
#[inline(never)] // Otherwise the compiler possibly does not inline the callers, as for `append`.
pub(super) fn take_obsolete<K>(deltas: &mut Deltas<K>) -> Deltas<K> {
    let removal = first_removal(deltas).cloned();
    std::mem::replace(deltas, removal.into_iter().collect())
}
