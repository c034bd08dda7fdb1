//! [`Compressor`]: compresses the bytes of objects, with the bytes of similar objects as LZ4
//! dictionaries.
//!
//! Objects of one family, for example the pods of one `ReplicaSet`, differ in few bytes. The bytes
//! of a family's second object become the base of the family: the dictionary for the later objects
//! of this family. The base is freed with the last object that was compressed with it. The next
//! object of the family then becomes the new base, or counts as the first one if
//! [`Families::sweep`] has removed the family meanwhile.
//!
//! The dictionary for the first object of each family is the common base: the bytes of the first
//! object that the [`Compressor`] compressed, from any family.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use parking_lot::Mutex;

/// The lowest number of families at which [`Families::sweep`] removes unused families.
const MIN_SWEEP: usize = 1024;

pub(crate) enum Bytes {
    Plain(Box<[u8]>),
    Compressed { bytes: Box<[u8]>, plain_len: u32, base: Arc<Base> },
}

/// The bytes of a base. They have an allocation of their own, because an `Arc` frees its own
/// allocation only when the last `Weak` is dropped, too.
type Base = Box<[u8]>;

impl Bytes {
    pub(crate) fn plain(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Plain(bytes) => Cow::Borrowed(bytes),
            Self::Compressed { bytes, plain_len, base } => {
                let plain = decompress_with_dict(bytes, *plain_len as usize, base);
                Cow::Owned(plain.expect("the bytes were compressed with this base"))
            }
        }
    }

    /// Returns the number of bytes in memory, without the dictionary (`base`), which objects share.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(bytes) | Self::Compressed { bytes, .. } => bytes.len(),
        }
    }
}

/// Compresses objects, and chooses the base of each object.
#[derive(Default)]
pub(crate) struct Compressor {
    families: Mutex<Families>,
}

#[derive(Default)]
struct Families {
    /// The base of each family. `None` if only the first object of the family has been compressed,
    /// with the common base.
    by_name: HashMap<Box<str>, Option<Weak<Base>>, RandomState>,
    /// The bytes of the first object that was compressed: the base of the first object of each
    /// family, and of objects without a family.
    common: Option<Arc<Base>>,
    /// Twice the number of families that the last [`sweep`](Self::sweep) kept. With fewer families
    /// than this number, `sweep` removes nothing.
    sweep_at: usize,
}

impl Compressor {
    /// Compresses an object. `family` is empty if the object has no family. Returns the plain bytes
    /// if compression does not make them smaller.
    pub(crate) fn compress(&self, plain: &[u8], family: &str) -> Bytes {
        let base = self.families.lock().base_of(plain, family);
        let Ok(plain_len) = u32::try_from(plain.len()) else { return Bytes::Plain(plain.into()) };
        let bytes = compress_with_dict(plain, &base);
        if bytes.len() < plain.len() {
            Bytes::Compressed { bytes: bytes.as_slice().into(), plain_len, base }
        } else {
            Bytes::Plain(plain.into())
        }
    }
}

impl Families {
    fn base_of(&mut self, plain: &[u8], family: &str) -> Arc<Base> {
        let common = Arc::clone(self.common.get_or_insert_with(|| Arc::new(plain.into())));
        if family.is_empty() {
            return common;
        }
        let Some(own) = self.by_name.get_mut(family) else {
            self.sweep();
            self.by_name.insert(family.into(), None);
            return common;
        };
        own.as_ref().and_then(Weak::upgrade).unwrap_or_else(|| {
            let base = Arc::new(plain.into());
            *own = Some(Arc::downgrade(&base));
            base
        })
    }

    /// Removes unused families: families whose base no object in memory uses, and families that
    /// have no base yet. Does nothing while there are few families.
    fn sweep(&mut self) {
        if self.by_name.len() < self.sweep_at.max(MIN_SWEEP) {
            return;
        }
        self.by_name.retain(|_, base| base.as_ref().is_some_and(|base| base.strong_count() > 0));
        self.sweep_at = 2 * self.by_name.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the bytes of a test object. Most of them are the same for all members of a family,
    /// and the others are unique.
    fn content(family: usize, member: usize) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed((family * 1000 + member) as u64);
        let shared: String = (0..40).map(|n| format!("env-{family}-{n}={}\n", n * family)).collect();
        let own: String = std::iter::repeat_with(|| random.alphanumeric()).take(40).collect();
        format!("{shared}uid={own}\n").into_bytes()
    }

    #[test]
    fn objects_of_one_family_share_a_base_and_shrink() {
        let compressor = Compressor::default();
        let stored: Vec<_> = (0..20).map(|n| compressor.compress(&content(7, n), "rs-7")).collect();
        for (n, bytes) in stored.iter().enumerate() {
            assert_eq!(&*bytes.plain(), content(7, n).as_slice());
        }
        let bases: Vec<_> = stored[1..]
            .iter()
            .map(|bytes| match bytes {
                Bytes::Compressed { base, .. } => Arc::as_ptr(base),
                Bytes::Plain(_) => panic!("not compressed"),
            })
            .collect();
        assert!(bases.windows(2).all(|pair| std::ptr::addr_eq(pair[0], pair[1])));
        assert!(stored[2..].iter().all(|bytes| bytes.len() * 8 < content(7, 0).len()));
    }

    #[test]
    fn base_is_freed_with_the_last_object_of_its_family() {
        let compressor = Compressor::default();
        drop(compressor.compress(&content(1, 0), "first"));
        let family: Vec<_> = (0..3).map(|n| compressor.compress(&content(2, n), "rs-2")).collect();
        let Bytes::Compressed { base, .. } = &family[2] else { panic!("not compressed") };
        let base = Arc::downgrade(base);
        drop(family);
        assert!(base.upgrade().is_none());
    }

    #[test]
    fn families_without_objects_are_removed() {
        let compressor = Compressor::default();
        for family in 0..3 * MIN_SWEEP {
            drop(compressor.compress(&content(family, 0), &family.to_string()));
        }
        assert!(compressor.families.lock().by_name.len() <= MIN_SWEEP);
    }

    proptest! {
        #[test]
        fn any_bytes_are_restored(objects in prop::collection::vec((any::<Vec<u8>>(), "[ab]?"), 1..20)) {
            let compressor = Compressor::default();
            for (plain, family) in &objects {
                let stored = compressor.compress(plain, family);
                prop_assert!(*stored.plain() == plain[..]);
            }
        }
    }
}
