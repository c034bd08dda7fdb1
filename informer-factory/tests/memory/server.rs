//! A server with four namespaces. The tests of informer-controller include this file.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_factory::{Cached, InformerOptions, InformerTask, ObjectKey, SharedIndexInformer};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::fixture::{Running, config_map, shown};

/// A server with four namespaces, each with its own source.
#[derive(Clone)]
pub(crate) struct Server(Arc<BTreeMap<&'static str, MemorySource<ConfigMap>>>);

impl Server {
    pub(crate) fn new() -> Self {
        let names =
            ["a", "b", "c", "d"].map(|name| (name, MemorySource::new(format!("configmaps of {name}"))));
        Self(Arc::new(names.into()))
    }

    pub(crate) fn of(&self, namespace: &str) -> &MemorySource<ConfigMap> {
        &self.0[namespace]
    }

    /// Creates or changes an object.
    pub(crate) fn put(&self, namespace: &str, name: &str, value: &str) -> Cached<ConfigMap> {
        let mut object = config_map(name, value);
        object.metadata.namespace = Some(namespace.into());
        let source = self.of(namespace);
        let exists = source.get(&ObjectKey::namespaced(namespace, name)).is_some();
        let put = if exists { source.update(object) } else { source.create(object) };
        put.expect("the write succeeds")
    }

    pub(crate) fn delete(&self, namespace: &str, name: &str) -> Cached<ConfigMap> {
        self.of(namespace).delete(&ObjectKey::namespaced(namespace, name)).expect("the object exists")
    }

    pub(crate) fn idle(
        &self,
        namespaces: &[&str],
        options: InformerOptions<ConfigMap>,
    ) -> (SharedIndexInformer<ConfigMap>, InformerTask) {
        let server = self.clone();
        let make = move |namespace: &str| Arc::new(server.of(namespace).clone()) as Arc<_>;
        let namespaces = namespaces.iter().copied();
        SharedIndexInformer::new_in_namespaces(make, namespaces, options).expect("valid names")
    }

    pub(crate) fn start(&self, namespaces: &[&str]) -> Running {
        Running::run(self.idle(namespaces, InformerOptions::new()))
    }

    /// Returns the objects in these namespaces, as `shown` formats them.
    pub(crate) fn objects(&self, namespaces: &[&str]) -> Vec<String> {
        namespaces
            .iter()
            .flat_map(|namespace| self.of(namespace).objects())
            .map(|object| shown(&object))
            .collect()
    }
}
