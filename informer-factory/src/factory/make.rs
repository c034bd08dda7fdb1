//! Creates the informers of a factory, from the settings for all types and for one type.

use std::any::TypeId;

use informer_reflector::KubeListWatch;
use kube::Resource;
use kube::core::discovery::ApiResource;
use serde::de::DeserializeOwned;

use super::SharedInformerFactory;
use super::registry::{Entry, InformerKey};
use super::scope::{Scope, Where};
use super::type_options::TypeOptions;
use crate::{InformerOptions, InformerTask, SharedIndexInformer};

impl SharedInformerFactory {
    /// Returns the informer of a resource in the scope of this handle; `make` creates it if there
    /// is none. `resource` is for types that don't determine their resource.
    pub(super) fn shared<K>(
        &self,
        resource: Option<&ApiResource>,
        is_namespaced: bool,
        dynamic_type: &K::DynamicType,
        make: impl FnOnce(KubeListWatch<K>, InformerOptions<K>) -> (SharedIndexInformer<K>, InformerTask<K>),
    ) -> SharedIndexInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let key = InformerKey {
            object: TypeId::of::<K>(),
            resource: resource.cloned(),
            scope: self.scope.of(is_namespaced),
        };
        self.take_out_if_ended(&key);
        let existing = self.inner.informers.get(&key).map(|entry| entry.informer());
        let informer = existing.unwrap_or_else(|| {
            let of_type = self.inner.config.by_type.get::<K>();
            let list_watch = self.list_watch(&key.scope, dynamic_type, of_type);
            // I8: with no lock on the registry.
            let (informer, task) = make(list_watch, self.options(of_type));
            let entry = Entry::new(informer, task);
            let is_followed = key.scope.namespace == Where::Followed;
            if is_followed {
                self.follow_namespaces(entry.handle().as_ref());
            }
            let informer = self.register(key.clone(), entry);
            if is_followed && let Some(shared) = self.inner.informers.get(&key).map(|entry| entry.handle()) {
                self.follow_namespaces(shared.as_ref());
            }
            informer
        });
        informer.expect("an informer is registered under the type of its objects")
    }

    /// Returns whether the builder has set the pruned paths of this type.
    pub(crate) fn prunes<K: 'static>(&self) -> bool {
        self.inner.config.by_type.get::<K>().is_some_and(|options| options.prune.is_some())
    }

    fn list_watch<K: Resource>(
        &self,
        scope: &Scope,
        dynamic_type: &K::DynamicType,
        of_type: Option<&TypeOptions<K>>,
    ) -> KubeListWatch<K> {
        let client = self.inner.client.clone();
        let mut list_watch = match &scope.namespace {
            Where::Everywhere => KubeListWatch::<K>::all_with(client, dynamic_type),
            Where::In(namespace) => KubeListWatch::namespaced_with(client, namespace, dynamic_type),
            Where::Followed => KubeListWatch::all_with(client, dynamic_type).namespace_by_namespace(),
        };
        if let Some(tweak) = &self.inner.config.tweak_list_options {
            list_watch = list_watch.tweak_list_options(|options| tweak(options));
        }
        if let Some(selector) = &scope.labels {
            list_watch = list_watch.label_selector(selector);
        }
        if let Some(selector) = &scope.fields {
            list_watch = list_watch.field_selector(selector);
        }
        if let Some(paths) = of_type.and_then(|options| options.prune.clone()) {
            list_watch = list_watch.prune(paths);
        }
        let names = [self.inner.config.name.as_deref(), of_type.and_then(|options| options.name.as_deref())];
        match names.into_iter().flatten().collect::<Vec<_>>().join("/") {
            name if name.is_empty() => list_watch,
            name => list_watch.name(name),
        }
    }

    fn options<K: Resource + 'static>(&self, of_type: Option<&TypeOptions<K>>) -> InformerOptions<K> {
        let config = &self.inner.config;
        let change = of_type.and_then(|options| options.reflector.as_ref());
        let reflector = change.map_or(config.reflector.clone(), |change| change(config.reflector.clone()));
        let mut options = InformerOptions::new().reflector(reflector.server(self.inner.server.clone()));
        options.ingest = of_type.map(|options| options.ingest.clone()).unwrap_or_default();
        if let Some(period) = of_type.and_then(|options| options.resync_period).or(config.resync_period) {
            options = options.resync_period(period);
        }
        if let Some(period) = config.verify_period {
            options = options.verify_every(period);
        }
        let of_metadata = config.transform_metadata.clone();
        let of_object = of_type.and_then(|options| options.transform.clone());
        if of_metadata.is_none() && of_object.is_none() {
            return options;
        }
        options.transform(move |object: &mut K| {
            if let Some(transform) = &of_metadata {
                transform(object.meta_mut());
            }
            of_object.as_ref().map_or(Ok(()), |transform| transform(object))
        })
    }

    /// Removes an informer that has ended by itself, for example because its source panicked, so
    /// that the next request creates a new one. Until then it is in the reports, and waits for it
    /// fail with the reason.
    fn take_out_if_ended(&self, key: &InformerKey) {
        // Checked in this order: informers also end after the shutdown of the factory, and those
        // stay.
        let has_ended = |entry: &Entry| entry.has_ended() && !self.inner.shutdown.is_cancelled();
        if self.inner.informers.get(key).is_some_and(|entry| has_ended(&entry)) {
            // I8: handlers may go with it, so it is dropped when the registry is free again.
            drop(self.inner.informers.remove_if(key, |_, entry| has_ended(entry)));
        }
    }

    /// Adds an informer to the registry, unless another thread has added one. Returns the one in
    /// the registry.
    fn register<K: 'static>(&self, key: InformerKey, new: Entry) -> Option<SharedIndexInformer<K>> {
        let mut new = Some(new);
        let entry = self.inner.informers.entry(key);
        let entry = entry.or_insert_with(|| new.take().expect("this is called but once"));
        let informer = entry.informer();
        let never_to_run = self.inner.shutdown.is_cancelled().then(|| entry.stop());
        // I8: handlers may go with these, so they go when the registry is free again.
        drop(entry);
        drop((never_to_run, new));
        if self.inner.config.stop_idle_after.is_some() {
            self.start_late_comers();
        }
        informer
    }

    /// Starts an informer that was created after the start, if the caller could not know that
    /// another start is needed.
    fn start_late_comers(&self) {
        let starting = self.inner.starting.lock();
        let Some(runtime) = starting.as_ref().filter(|_| !self.inner.shutdown.is_cancelled()) else { return };
        for entry in &self.inner.informers {
            if let Some(run) = entry.start(&self.inner.shutdown) {
                self.inner.tasks.spawn_on(run, runtime);
            }
        }
    }
}
