//! What several changes of one key come to while they wait: they stay in order, and two ends in a row are one.

use smallvec::smallvec;

use crate::{Delta, Deltas};

/// Appends a change; two deletions in a row become one, and a real last state wins over a tombstone, as a deletion does
/// over a release. Returns the one that is not needed any more.
#[inline(never)] // Or it keeps its callers from being inlined.
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

/// Puts a deletion before newer changes, by the same rule as `append`.
pub(super) fn prepend<K>(deltas: &mut Deltas<K>, end: Delta<K>) -> Option<Delta<K>> {
    let newer = std::mem::replace(deltas, smallvec![end]);
    let mut superfluous = None;
    for delta in newer {
        superfluous = append(deltas, delta).or(superfluous);
    }
    superfluous
}
