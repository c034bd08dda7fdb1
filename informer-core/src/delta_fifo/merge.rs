//! Adds a change to the pending changes of one key. If two consecutive changes both remove the
//! object, only one of the two is kept. All other changes are kept.

use smallvec::smallvec;

use crate::{Delta, Deltas};

/// Appends a change to the pending changes of a key. Returns the change that was not kept, if any.
///
/// Of two consecutive changes that remove the object, only one is kept:
/// - Of two deletions, the later one is kept if it has the final state of the object
///   ([`Deleted::is_exact`](crate::Deleted::is_exact)), or if the earlier one has no last known
///   object. Otherwise the earlier one is kept.
/// - Of a deletion and a release (the namespace is no longer watched), the deletion is kept.
/// - Of two releases, the later one is kept.
#[inline(never)] // Otherwise the compiler does not inline the callers.
pub(super) fn append<K>(deltas: &mut Deltas<K>, delta: Delta<K>) -> Option<Delta<K>> {
    match (deltas.last_mut(), delta) {
        (Some(Delta::Deleted(earlier)), Delta::Deleted(later)) => {
            let later_counts = later.is_exact() || (!earlier.is_exact() && earlier.last_known().is_none());
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

/// Inserts `removal`, a [`Delta::Deleted`] or [`Delta::Released`], at the front of `deltas`, which
/// are newer changes of the same key. If `deltas` starts with another removal, keeps only one of
/// the two, as [`append`] does, and returns the other.
pub(super) fn prepend<K>(deltas: &mut Deltas<K>, removal: Delta<K>) -> Option<Delta<K>> {
    let newer = std::mem::replace(deltas, smallvec![removal]);
    let mut superfluous = None;
    for delta in newer {
        superfluous = append(deltas, delta).or(superfluous);
    }
    superfluous
}
