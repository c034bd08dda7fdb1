//! Creates the informers of a factory, from the settings for all types and for one type.

use std::any::TypeId;
use std::sync::Arc;

use informer_core::AnyObject;
use informer_reflector::{Ingest, KubeListWatch};
use kube::Resource;
use kube::core::discovery::ApiResource;
use serde::de::DeserializeOwned;

use super::SharedInformerFactory;
use super::namespaces::log_fixed_namespaces;
use super::registry::{Entry, InformerKey};
use super::scope::{NamespaceScope, Scope};
use super::type_options::TypeOptions;
use crate::{InformerOptions, InformerTask, SharedIndexInformer};

impl SharedInformerFactory {
    /// Returns the informer of a resource in `self.scope`, or creates it with `make`. `resource` is
    /// required if `K` is a type without a fixed resource, such as `DynamicObject`.
    pub(super) fn shared<K>(
        &self,
        resource: Option<&ApiResource>,
        is_namespaced: bool,
        dynamic_type: &K::DynamicType,
        make: impl FnOnce(KubeListWatch<K>, InformerOptions<K>) -> (SharedIndexInformer<K>, InformerTask),
    ) -> SharedIndexInformer<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let key = InformerKey {
            object: TypeId::of::<K>(),
            resource: resource.cloned(),
            scope: self.scope.for_resource(is_namespaced),
        };
        let informer = self.existing(&key).unwrap_or_else(|| {
            let client = self.inner.client.clone();
            let list_watch = match &key.scope.namespace {
                NamespaceScope::One(namespace) => {
                    KubeListWatch::<K>::namespaced_with(client, namespace, dynamic_type)
                }
                NamespaceScope::All | NamespaceScope::Separate => {
                    KubeListWatch::all_with(client, dynamic_type)
                }
            };
            let of_type = self.inner.config.by_type.get::<K>();
            let list_watch = self.list_watch(list_watch.cast(), &key.scope, of_type).cast();
            let options = self.options(of_type, Ingest::of::<K>()).cast();
            // I8: `make` is user code, and the registry is not locked here.
            let (informer, task) = make(list_watch, options);
            self.add(key, Entry::new(&informer, task, self.inner.shutdown.child_token()))
        });
        informer.cast()
    }

    /// Returns whether the factory was built with [`TypeOptions::prune`] for the type `K`.
    pub(crate) fn has_prune_setting<K: 'static>(&self) -> bool {
        self.inner.config.by_type.get::<K>().is_some_and(|options| options.prune.is_some())
    }

    fn list_watch(
        &self,
        mut list_watch: KubeListWatch<AnyObject>,
        scope: &Scope,
        of_type: Option<&TypeOptions<AnyObject>>,
    ) -> KubeListWatch<AnyObject> {
        if scope.namespace == NamespaceScope::Separate {
            list_watch = list_watch.namespace_by_namespace();
        }
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

    fn options(
        &self,
        of_type: Option<&TypeOptions<AnyObject>>,
        defaults: Ingest,
    ) -> InformerOptions<AnyObject> {
        let config = &self.inner.config;
        let change = of_type.and_then(|options| options.reflector.as_ref());
        let reflector = change.map_or(config.reflector.clone(), |change| change(config.reflector.clone()));
        let mut ingest = of_type.map_or(defaults, |options| options.ingest.clone());
        if let Some(transform) = &config.transform_metadata {
            ingest.set_metadata_transform(Arc::clone(transform));
        }
        let mut options =
            InformerOptions::with_ingest(ingest).reflector(reflector.server(self.inner.server.clone()));
        if let Some(period) = of_type.and_then(|options| options.resync_period).or(config.resync_period) {
            options = options.resync_period(period);
        }
        if let Some(period) = config.verify_period {
            options = options.verify_every(period);
        }
        options
    }

    fn existing(&self, key: &InformerKey) -> Option<SharedIndexInformer<AnyObject>> {
        // An ended informer is removed only now, so that the factory reports it as stopped until
        // the next request for it.
        self.remove_if_ended(key);
        self.inner.informers.get(key).map(|entry| entry.requested_informer())
    }

    /// Adds an informer to the registry, unless another thread has added one for this key. Returns
    /// the registered informer.
    fn add(&self, key: InformerKey, entry: Entry) -> SharedIndexInformer<AnyObject> {
        let is_separate = key.scope.namespace == NamespaceScope::Separate;
        if is_separate {
            log_fixed_namespaces(&entry.handle());
            self.apply_namespaces(&entry.handle());
        }
        let informer = self.register(key, entry);
        if is_separate {
            // The factory's namespaces can have changed before the informer was registered.
            self.apply_namespaces(&informer);
        }
        informer
    }

    /// Removes the informer of a key if it has ended by itself, for example because its source
    /// panicked. Does nothing after the factory's shutdown.
    fn remove_if_ended(&self, key: &InformerKey) {
        // Informers that ended because the factory was shut down stay registered. The shutdown is
        // checked last, because it can end the informer between the two checks.
        let has_ended = |entry: &Entry| entry.has_ended() && !self.inner.shutdown.is_cancelled();
        if self.inner.informers.get(key).is_some_and(|entry| has_ended(&entry)) {
            // I8: dropping the entry can drop handlers, so it is dropped after the registry is
            // unlocked.
            drop(self.inner.informers.remove_if(key, |_, entry| has_ended(entry)));
        }
    }

    fn register(&self, key: InformerKey, new: Entry) -> SharedIndexInformer<AnyObject> {
        let mut new = Some(new);
        let entry = self.inner.informers.entry(key);
        let entry = entry.or_insert_with(|| new.take().expect("the closure is called at most once"));
        let informer = entry.requested_informer();
        let never_to_run = self.inner.shutdown.is_cancelled().then(|| entry.stop());
        // I8: dropping a task or an entry can drop handlers, so both are dropped after the registry
        // is unlocked.
        drop(entry);
        drop((never_to_run, new));
        if self.inner.config.stop_idle_after.is_some() {
            // The new informer can replace one that was idle and therefore stopped. The program
            // does not call `start` for the replacement.
            self.start_new_informers();
        }
        informer
    }

    /// Starts all informers that are not started. Does nothing before the first `start` or after
    /// the shutdown.
    fn start_new_informers(&self) {
        let starting = self.inner.starting.lock();
        let runtime = starting.clone().filter(|_| !self.inner.shutdown.is_cancelled());
        if let Some(runtime) = runtime {
            self.start_unstarted(starting, &runtime);
        }
    }
}
