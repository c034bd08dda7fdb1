//! Keys, handles and metadata of Kubernetes objects.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;

use crate::error::short;
use crate::{Cached, KeyError, ObjectKey};

impl ObjectKey {
    /// Returns the key of a Kubernetes object.
    ///
    /// # Errors
    /// [`KeyError::MissingName`] if the object has no name.
    pub fn of<K: Resource>(object: &K) -> Result<Self, KeyError> {
        Self::of_meta(object.meta(), std::any::type_name::<K>())
    }

    /// Returns the key of the object that has this metadata.
    ///
    /// # Errors
    /// [`KeyError::MissingName`] if the object has no name. The error message names the object's
    /// type, which is the last part of `type_name`.
    #[doc(hidden)]
    pub fn of_meta(meta: &ObjectMeta, type_name: &'static str) -> Result<Self, KeyError> {
        match meta.name.as_deref() {
            Some(name) if !name.is_empty() => Ok(Self::new(meta.namespace.as_deref(), name)),
            _ => Err(KeyError::missing_name(type_name, meta)),
        }
    }
}

impl<K: Resource + Send + Sync + 'static> Cached<K> {
    /// Wraps a Kubernetes object. The key is `namespace/name`, or `name` for a cluster-scoped
    /// object.
    ///
    /// # Errors
    /// [`KeyError::MissingName`] if the object has no name.
    pub fn new(object: K) -> Result<Self, KeyError> {
        let key = ObjectKey::of(&object)?;
        let meta = object.meta();
        let resource_version = meta.resource_version.as_deref().into();
        let uid = meta.uid.as_deref().into();
        Ok(Self::from_parts(key, resource_version, uid, object))
    }
}

impl<K: Resource + 'static> Cached<K> {
    /// Returns the object's metadata. Of an encoded object, only the metadata is decoded.
    #[must_use]
    pub fn metadata(&self) -> Cow<'_, ObjectMeta> {
        match self.handle.as_encoded() {
            Some(encoded) => Cow::Owned(encoded.metadata()),
            None => Cow::Borrowed(self.meta()),
        }
    }
}

impl KeyError {
    /// Returns the error for an object without a name. The error describes the object only by its
    /// type and metadata, because the content can be secret.
    fn missing_name(type_name: &'static str, meta: &ObjectMeta) -> Self {
        let mut object = format!("a {}", short(type_name));
        let known =
            [("namespace", &meta.namespace), ("generateName", &meta.generate_name), ("UID", &meta.uid)];
        let known = known.into_iter().filter_map(|(field, value)| Some((field, value.as_deref()?)));
        for (position, (field, value)) in known.filter(|(_, value)| !value.is_empty()).enumerate() {
            object += if position == 0 { " with " } else { " and " };
            object += &format!("{field} \"{value}\"");
        }
        Self::MissingName { object }
    }
}
