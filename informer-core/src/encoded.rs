//! [`Encoded`]: an object as bytes, and [`Codec`], which decodes them when a reader needs the
//! object.
//!
//! A decoded object is several times the size of its encoded form.
//!
//! The lock of an [`Encoded`] and the lock of a [`Codec`] are never held together, and no user code
//! runs while either is held.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

#[cfg(feature = "kubernetes")]
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;

use crate::compression::{Bytes, Compressor};
use crate::{AnyObject, OwnedObject};

/// The form in which a cache keeps objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Storage {
    /// Decoded: reading an object costs nothing.
    #[default]
    Decoded,
    /// As bytes, usually in the encoding of the API server, protobuf or JSON, without the fields
    /// that the informer prunes, such as `metadata.managedFields`. A type that is not of
    /// k8s-openapi, such as a slim view (a struct with some of the fields), is kept as JSON without
    /// most of the fields that the type lacks.
    ///
    /// A stored object is decoded when a handle to the object is dereferenced or an index function
    /// reads the object. The decoded object is freed when all handles that were dereferenced have
    /// been dropped, except that a few recently decoded objects stay in memory. Relists, lookups by
    /// key or namespace, and reading keys, resource versions or UIDs decode no stored object.
    /// [`Cached::metadata`](crate::Cached::metadata) and label selectors decode only the metadata.
    ///
    /// If the informer has a transform, or if the source cannot return encoded objects, objects are
    /// decoded when they arrive, and are then encoded as JSON. An object that cannot be encoded
    /// stays decoded.
    Encoded,
    /// As the bytes of [`Encoded`](Self::Encoded), compressed. An object is stored as its
    /// differences from another object, usually one with the same owner, such as another pod of its
    /// `ReplicaSet`. A pod then takes 1 to 2 KB instead of about 4 KB. Adding and reading an object
    /// take some microseconds more.
    Compressed,
}

/// The number of most recently decoded objects that a [`Codec`] keeps in memory.
const RECENT: usize = 32;

/// Decodes the bytes of objects of one type.
pub trait DecodeBytes: Send + Sync + 'static {
    /// Decodes an object. This method cannot fail: the caller of [`Encoded::new`] has checked that
    /// `bytes` can be decoded.
    fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject>;

    /// Decodes the metadata of a Kubernetes object. Default: returns empty metadata, for objects
    /// that are not Kubernetes objects.
    #[cfg(feature = "kubernetes")]
    fn metadata(&self, bytes: &[u8]) -> ObjectMeta {
        let _ = bytes;
        ObjectMeta::default()
    }
}

/// Decodes objects of one type, and keeps the most recently decoded objects in memory.
pub struct Codec {
    decode: Box<dyn DecodeBytes>,
    compressor: Option<Compressor>,
    /// The last [`RECENT`] decoded objects, oldest first, so that repeated reads do not decode an
    /// object again.
    recent: Mutex<VecDeque<Arc<OwnedObject<AnyObject>>>>,
}

impl Codec {
    /// Returns a codec that decodes objects with `decode`. It also compresses objects if `storage`
    /// is [`Storage::Compressed`].
    #[must_use]
    pub fn new(decode: impl DecodeBytes, storage: Storage) -> Self {
        let compressor = (storage == Storage::Compressed).then(Compressor::default);
        Self { decode: Box::new(decode), compressor, recent: Mutex::default() }
    }

    /// Adds a newly decoded object to the recently decoded objects. If there are already
    /// [`RECENT`], drops the object that was decoded before all others.
    fn keep(&self, object: Arc<OwnedObject<AnyObject>>) {
        let mut recent = self.recent.lock();
        let oldest = if recent.len() < RECENT { None } else { recent.pop_front() };
        recent.push_back(object);
        drop(recent);
        // I8: the destructor of an object is user code.
        drop(oldest);
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").finish_non_exhaustive()
    }
}

/// An object as bytes. Dereferencing a handle to the object decodes the object. The decoded object
/// is freed when all handles that were dereferenced have been dropped, except that a few recently
/// decoded objects stay in memory.
pub struct Encoded {
    bytes: Bytes,
    codec: Arc<Codec>,
    /// The decoded object, while a handle uses it or the codec keeps it.
    decoded: Mutex<Weak<OwnedObject<AnyObject>>>,
}

impl Encoded {
    /// Returns the encoded form of an object. The caller must have checked that `codec` decodes the
    /// bytes. `family` is a text that similar objects have in common, such as the UID of their
    /// owner, or empty. Only compression uses the family.
    #[must_use]
    pub fn new(bytes: &[u8], family: &str, codec: Arc<Codec>) -> Self {
        let bytes = match &codec.compressor {
            Some(compressor) => compressor.compress(bytes, family),
            None => Bytes::Plain(bytes.into()),
        };
        Self { bytes, codec, decoded: Mutex::default() }
    }

    /// Returns the number of bytes of the object, after compression if any.
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    #[cfg(feature = "kubernetes")]
    pub(crate) fn metadata(&self) -> ObjectMeta {
        self.codec.decode.metadata(&self.bytes.plain())
    }

    /// Decodes the object for this caller only: no other reader shares the result.
    pub(crate) fn decode(&self) -> OwnedObject<AnyObject> {
        self.codec.decode.object(&self.bytes.plain())
    }

    /// Returns the decoded object, which all concurrent readers share.
    pub(crate) fn decoded(&self) -> Arc<OwnedObject<AnyObject>> {
        if let Some(decoded) = self.decoded.lock().upgrade() {
            return decoded;
        }
        let decoded = self.share(Arc::new(self.decode()));
        self.codec.keep(Arc::clone(&decoded));
        decoded
    }

    /// Shares `decoded` with other readers, and returns it. If another thread has already shared a
    /// decoded object, returns that object instead.
    fn share(&self, decoded: Arc<OwnedObject<AnyObject>>) -> Arc<OwnedObject<AnyObject>> {
        let mut shared = self.decoded.lock();
        if let Some(other) = shared.upgrade() {
            return other;
        }
        *shared = Arc::downgrade(&decoded);
        decoded
    }
}

impl fmt::Debug for Encoded {
    /// Never shows the content of the object: the object can be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} bytes)", self.byte_len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Cached, ObjectKey};

    #[derive(Default)]
    struct Counting(Arc<AtomicUsize>);

    impl DecodeBytes for Counting {
        fn object(&self, bytes: &[u8]) -> OwnedObject<AnyObject> {
            self.0.fetch_add(1, Ordering::Relaxed);
            OwnedObject::new(String::from_utf8_lossy(bytes).into_owned()).cast()
        }
    }

    fn cached(text: &str, codec: &Arc<Codec>) -> Cached<String> {
        let encoded = Encoded::new(text.as_bytes(), "", Arc::clone(codec));
        let key = ObjectKey::cluster_scoped(text);
        let object = OwnedObject::<String>::encoded(key.clone(), "5".into(), "u".into(), encoded);
        object.into_cached(key, "5".into(), "u".into())
    }

    #[test]
    fn encoded_object_is_decoded_only_when_it_is_read() {
        let decoded = Arc::new(AtomicUsize::new(0));
        let codec = Arc::new(Codec::new(Counting(Arc::clone(&decoded)), Storage::Encoded));
        let object = cached("content", &codec);
        let other = object.clone();
        assert_eq!((object.key().as_str(), object.resource_version()), ("content", &"5".into()));
        assert_eq!(format!("{object:?}"), "Cached(content@5)");
        assert_eq!(decoded.load(Ordering::Relaxed), 0);
        assert_eq!((object.len(), other.as_str()), (7, "content"));
        assert_eq!(decoded.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn decoded_object_is_freed_after_later_reads_of_others() {
        let decoded = Arc::new(AtomicUsize::new(0));
        let codec = Arc::new(Codec::new(Counting(Arc::clone(&decoded)), Storage::Encoded));
        let objects: Vec<_> = (0..=RECENT).map(|n| cached(&n.to_string(), &codec)).collect();
        let read = |object: &Cached<String>| object.read(String::clone);
        assert_eq!((read(&objects[0]), read(&objects[0])), ("0".to_owned(), "0".to_owned()));
        assert_eq!(decoded.load(Ordering::Relaxed), 1);
        objects[1..].iter().for_each(|object| drop(read(object)));
        assert_eq!(decoded.load(Ordering::Relaxed), RECENT + 1);
        assert!(read(&objects[0]) == "0" && decoded.load(Ordering::Relaxed) == RECENT + 2);
    }
}
