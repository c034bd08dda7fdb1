//! [`Packed`]: an encoded object, which is decoded on first use.
//!
//! A decoded object is several times the size of its encoded form: a pod has a hundred small
//! allocations. If most objects of a cache are never read, the encoded form saves memory.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use crate::cached::Object;

/// An encoded object, which is decoded on first use.
pub struct Packed<K> {
    bytes: Box<[u8]>,
    unpack: fn(&[u8]) -> K,
    object: OnceLock<Box<K>>,
}

impl<K> Packed<K> {
    /// Stores an object as these bytes. `unpack` decodes the object on first use, and is called at
    /// most once; the decoded object is then kept beside the bytes. `unpack` must not fail, so the
    /// caller must check before that it can decode these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>, unpack: fn(&[u8]) -> K) -> Self {
        Self { bytes: bytes.into(), unpack, object: OnceLock::new() }
    }

    /// Returns whether the object has been decoded, so that both forms are in memory.
    #[must_use]
    pub fn is_unpacked(&self) -> bool {
        self.object.get().is_some()
    }
}

impl<K: Send + Sync + 'static> Object for Packed<K> {
    fn get(&self) -> &dyn Any {
        &**self.object.get_or_init(|| Box::new((self.unpack)(&self.bytes)))
    }

    fn get_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }
}

impl<K> fmt::Debug for Packed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Packed({} bytes)", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Cached, ObjectKey};

    static UNPACKED: AtomicUsize = AtomicUsize::new(0);

    fn unpack(bytes: &[u8]) -> String {
        UNPACKED.fetch_add(1, Ordering::Relaxed);
        String::from_utf8_lossy(bytes).into_owned()
    }

    #[test]
    fn an_object_is_unpacked_once_and_only_if_it_is_looked_at() {
        let packed = Packed::new(b"content".to_vec(), unpack);
        let cached = Cached::from_packed(ObjectKey::cluster_scoped("a"), "5".into(), "u".into(), packed);
        let other = cached.clone();
        assert_eq!((cached.key().as_str(), cached.resource_version()), ("a", &"5".into()));
        assert_eq!(format!("{cached:?}"), "Cached(a@5)");
        assert_eq!(UNPACKED.load(Ordering::Relaxed), 0, "not unpacked before the first access");
        assert_eq!((cached.len(), other.as_str()), (7, "content"));
        assert_eq!(UNPACKED.load(Ordering::Relaxed), 1);
    }
}
