//! [`Intake`]: the door through which decoded objects enter: transform, key, handle.

use std::panic::{AssertUnwindSafe, catch_unwind};

use informer_core::{Cached, Malformed, ObjectKey};
use kube::Resource;

use super::config::Transform;

pub(super) struct Intake<K> {
    pub(super) transform: Option<Transform<K>>,
}

impl<K: Resource> Intake<K> {
    /// Makes a cached object of a decoded one, or says why that can't be done (I10).
    pub(super) fn take(&self, mut object: K) -> Result<Cached<K>, Malformed> {
        if let Some(transform) = &self.transform {
            // Read before, because a transform that fails may leave anything behind.
            let meta = object.meta();
            let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
            let resource_version = meta.resource_version.as_deref().into();
            let outcome = catch_unwind(AssertUnwindSafe(|| transform(&mut object)))
                .unwrap_or_else(|_| Err("the transform panicked".to_owned()));
            if let Err(error) = outcome {
                let key = name.map(|name| ObjectKey::new(namespace.as_deref(), &name));
                return Err(Malformed { key, resource_version, error });
            }
        }
        let resource_version = object.meta().resource_version.as_deref().into();
        Cached::new(object).map_err(|error| Malformed {
            key: None,
            resource_version,
            error: error.to_string(),
        })
    }
}
