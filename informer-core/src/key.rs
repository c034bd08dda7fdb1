//! [`ObjectKey`]: identifies an object among the objects of its resource, as `namespace/name` or
//! `name`.
//!
//! client-go: `MetaNamespaceKeyFunc` and `SplitMetaNamespaceKey` of tools/cache/store.go, and
//! `ObjectName` of tools/cache/object-names.go. Here, the string is built and hashed once, and then
//! shared.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use foldhash::fast::RandomState;

use crate::KeyError;

/// The hash seed of all keys in this process. It is random, so that an attacker cannot choose names
/// whose hashes collide.
static HASH_SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);

thread_local! {
    /// A reused buffer in which keys are built, so that no key allocates a temporary `String`.
    static SCRATCH: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Identifies an object among the objects of its resource: `namespace/name`, or `name` for a
/// cluster-scoped object.
///
/// A clone only increments a reference count. The hash is computed once, when the key is created.
/// Keys are ordered as the API server orders a list: by the bytes of `namespace/name`.
///
/// ```
/// use informer_core::ObjectKey;
///
/// let key = ObjectKey::namespaced("kube-system", "coredns");
/// assert_eq!(key.to_string(), "kube-system/coredns");
/// assert_eq!((key.namespace(), key.name()), (Some("kube-system"), "coredns"));
/// assert_eq!("kube-system/coredns".parse(), Ok(key));
/// ```
#[doc(alias = "ObjectName")]
#[doc(alias = "MetaNamespaceKeyFunc")]
#[derive(Clone)]
pub struct ObjectKey {
    text: Arc<str>,
    hash: u64,
}

impl ObjectKey {
    /// Returns the key of an object in a namespace, or of a cluster-scoped object if `namespace` is
    /// empty.
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster_scoped(name);
        }
        let text = SCRATCH.with_borrow_mut(|text| {
            text.clear();
            text.push_str(namespace);
            text.push('/');
            text.push_str(name);
            Arc::from(text.as_str())
        });
        Self::from_text(text)
    }

    /// Returns the key of a cluster-scoped object.
    #[must_use]
    pub fn cluster_scoped(name: &str) -> Self {
        Self::from_text(name.into())
    }

    /// Returns the key of an object in `namespace`, or of a cluster-scoped object if `namespace` is
    /// `None` or empty.
    #[must_use]
    pub fn new(namespace: Option<&str>, name: &str) -> Self {
        Self::namespaced(namespace.unwrap_or_default(), name)
    }

    /// Creates a key from any string, for objects that are not Kubernetes objects.
    ///
    /// The string is not validated. If it contains a `/`, [`namespace`](Self::namespace) returns
    /// the part before the first `/`.
    #[must_use]
    #[doc(alias = "ExplicitKey")]
    pub fn from_text(text: Arc<str>) -> Self {
        let hash = Self::hash_of(&text);
        Self { text, hash }
    }

    /// Returns an empty placeholder for a key that is not known yet. Creating it neither allocates
    /// nor hashes.
    pub(crate) fn placeholder() -> Self {
        Self { text: Arc::default(), hash: 0 }
    }

    /// Returns the whole key, `namespace/name` or `name`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the namespace, or `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.text.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the object's name, without the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        self.text.split_once('/').map_or(&self.text, |(_, name)| name)
    }

    /// Returns the precomputed hash. Within one process, equal keys have equal hashes.
    #[must_use]
    pub fn hash_value(&self) -> u64 {
        self.hash
    }

    /// Returns the hash that a key with this string has, for lookups that have no [`ObjectKey`].
    #[must_use]
    pub fn hash_of(text: &str) -> u64 {
        HASH_SEED.hash_one(text)
    }
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        // In most comparisons, one key is a clone of the other, or the hashes differ.
        self.hash == other.hash && (Arc::ptr_eq(&self.text, &other.text) || self.text == other.text)
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.text)
    }
}

impl std::str::FromStr for ObjectKey {
    type Err = KeyError;

    /// Parses `name` or `namespace/name`.
    ///
    /// # Errors
    /// [`KeyError::Unparsable`] if a part is empty, or if the string contains more than one `/`.
    /// client-go's `SplitMetaNamespaceKey` accepts empty parts.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut parts = text.split('/');
        let well_formed = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty());
        if well_formed {
            Ok(Self::from_text(text.into()))
        } else {
            Err(KeyError::Unparsable { text: text.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_returns_its_namespace_and_name() {
        let key = ObjectKey::namespaced("ns", "name");
        assert_eq!((key.namespace(), key.name(), key.as_str()), (Some("ns"), "name", "ns/name"));
        let key = ObjectKey::new(None, "node-1");
        assert_eq!((key.namespace(), key.name(), key.as_str()), (None, "node-1", "node-1"));
        assert_eq!(ObjectKey::new(Some(""), "node-1"), key);
        assert_eq!(ObjectKey::namespaced("", "node-1"), key);
    }

    #[test]
    fn equal_keys_have_equal_hashes_after_any_construction() {
        let made = ObjectKey::namespaced("ns", "name");
        let parsed: ObjectKey = "ns/name".parse().expect("a well-formed key");
        assert_eq!(made, parsed);
        assert_eq!(made.hash_value(), parsed.hash_value());
        assert_eq!(made.hash_value(), ObjectKey::hash_of("ns/name"));
    }

    #[test]
    fn key_with_an_empty_part_or_second_slash_is_rejected() {
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            let error = text.parse::<ObjectKey>().expect_err(text);
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn keys_have_the_order_of_a_server_list() {
        // '-' sorts before '/', so the server lists "a-b/x" before "a/x".
        let mut keys = ["a/x", "a-b/x", "a/b"].map(|text| ObjectKey::from_text(text.into()));
        keys.sort();
        assert_eq!(keys.each_ref().map(ObjectKey::as_str), ["a-b/x", "a/b", "a/x"]);
    }
}
