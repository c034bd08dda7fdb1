//! [`Objects`]: the result of a query.
//!
//! A slot is the number of an object in the store. A [`Posting`] is a set of slots, for example the
//! slots of all objects with one index value. The set is divided into chunks.

use std::fmt;
use std::sync::OnceLock;

use informer_core::{AnyObject, Cached, ObjectKey};

use crate::posting::Posting;
use crate::shared::State;
use crate::slot_map::Entries;

/// The objects that a query of a store returned, in no particular order.
///
/// The result shares the store's data as of the query, without copying objects. Later changes of
/// the store do not affect the result. Iteration by reference yields `&Cached<K>`, and iteration by
/// value yields `Cached<K>`.
pub struct Objects<K> {
    entries: Entries<Cached<AnyObject>>,
    slots: Slots,
    len: usize,
    has_encoded: bool,
    /// Copies of the store's handles, which [`iter`](Self::iter) makes if the store has ever had
    /// encoded objects. Each copy keeps its decoded object until these `Objects` are dropped.
    own: OnceLock<Vec<Cached<K>>>,
}

/// The slots of the objects in the result. [`Objects::entries`] has all objects of the store,
/// because it shares the store's data.
#[derive(Clone)]
enum Slots {
    /// All slots: the result has every object of the store.
    All,
    /// Only the objects with these slots.
    Of(Posting),
}

impl<K: 'static> Objects<K> {
    pub(crate) fn all(state: &State) -> Self {
        Self::new(state.objects.entries().clone(), Slots::All, state.objects.len(), state.has_encoded())
    }

    pub(crate) fn of_posting(state: &State, posting: Posting) -> Self {
        let len = posting.len();
        Self::new(state.objects.entries().clone(), Slots::Of(posting), len, state.has_encoded())
    }

    fn new(entries: Entries<Cached<AnyObject>>, slots: Slots, len: usize, has_encoded: bool) -> Self {
        Self { entries, slots, len, has_encoded, own: OnceLock::new() }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the objects. Dereferencing an encoded object decodes it, and the decoded
    /// object stays in memory at least until these `Objects` are dropped. To decode objects only
    /// temporarily, iterate by value or use [`Cached::read`].
    pub fn iter(&self) -> impl Iterator<Item = &Cached<K>> {
        let own = self.has_encoded.then(|| self.own.get_or_init(|| self.to_vec()));
        let stored = own.is_none().then(|| self.stored().map(Cached::cast_ref));
        own.into_iter().flatten().chain(stored.into_iter().flatten())
    }

    /// Iterates over the store's own handles of the objects. The handle of an encoded object must
    /// not be dereferenced: only a [cast](Cached::cast) copy of the handle can decode the object.
    pub(crate) fn stored(&self) -> impl Iterator<Item = &Cached<AnyObject>> {
        let (all, of) = match &self.slots {
            Slots::All => (Some(self.entries.iter().flatten()), None),
            Slots::Of(posting) => {
                (None, Some(posting.iter().filter_map(|slot| self.entries.get(slot as usize).as_ref())))
            }
        };
        all.into_iter().flatten().chain(of.into_iter().flatten())
    }

    /// Returns a vector of handles to the objects.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Cached<K>> {
        let mut objects = Vec::with_capacity(self.len);
        objects.extend(self.stored().map(|object| object.clone().cast()));
        objects
    }

    pub(crate) fn cast<T: 'static>(self) -> Objects<T> {
        Objects::new(self.entries, self.slots, self.len, self.has_encoded)
    }

    pub(crate) fn sorted_keys(&self) -> Vec<ObjectKey> {
        let mut keys: Vec<ObjectKey> = self.stored().map(|object| object.key().clone()).collect();
        keys.sort_unstable();
        keys
    }
}

impl<K: 'static> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self::new(self.entries.clone(), self.slots.clone(), self.len, self.has_encoded)
    }
}

impl<'a, K: 'static> IntoIterator for &'a Objects<K> {
    type Item = &'a Cached<K>;
    type IntoIter = Box<dyn Iterator<Item = &'a Cached<K>> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}

impl<K: 'static> IntoIterator for Objects<K> {
    type Item = Cached<K>;
    type IntoIter = IntoIter<K>;

    fn into_iter(self) -> IntoIter<K> {
        IntoIter { objects: self, chunk: 0, position: 0 }
    }
}

/// An iterator over the objects of a query result ([`Objects`]), by value.
pub struct IntoIter<K> {
    objects: Objects<K>,
    /// The number of the current chunk of the posting. Always 0 for [`Slots::All`], which has no
    /// posting.
    chunk: usize,
    /// The number with which the next call continues:
    /// - For [`Slots::All`], a slot.
    /// - For [`Slots::Of`], a position in the current chunk.
    position: usize,
}

impl<K: 'static> Iterator for IntoIter<K> {
    type Item = Cached<K>;

    fn next(&mut self) -> Option<Cached<K>> {
        loop {
            let slot = match &self.objects.slots {
                Slots::All if self.position == self.objects.entries.capacity() => return None,
                Slots::All => {
                    self.position += 1;
                    self.position - 1
                }
                Slots::Of(posting) => {
                    let chunk = posting.chunk(self.chunk)?;
                    let Some(slot) = chunk.get(self.position) else {
                        (self.chunk, self.position) = (self.chunk + 1, 0);
                        continue;
                    };
                    self.position += 1;
                    *slot as usize
                }
            };
            if let Some(object) = self.objects.entries.get(slot) {
                return Some(object.clone().cast());
            }
        }
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for IntoIter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("objects", &self.objects).finish_non_exhaustive()
    }
}
