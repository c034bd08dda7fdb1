//! [`DynamicInformers`] and [`MetadataInformers`]: informers of resources that have no type of
//! their own here, and of metadata.
//!
//! client-go has factories of their own for both (dynamic/dynamicinformer,
//! metadata/metadatainformer). Here they are a way to ask the one factory, so that all informers
//! share options, start and end.

use std::sync::Arc;

use kube::Resource;
use kube::core::discovery::{ApiResource, Scope};
use kube::core::{DynamicObject, GroupVersionResource, PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::{ForResourceError, SharedInformerFactory};
use crate::{InformerScope, SharedIndexInformer};

impl SharedInformerFactory {
    /// Returns the informers of objects that need no type, in the scope of this handle.
    #[must_use]
    #[doc(alias = "DynamicSharedInformerFactory")]
    #[doc(alias = "dynamicinformer")]
    pub fn dynamic(&self) -> DynamicInformers<'_> {
        DynamicInformers { factory: self }
    }

    /// Returns the metadata-only informers in the scope of this handle.
    #[must_use]
    #[doc(alias = "metadatainformer")]
    pub fn metadata(&self) -> MetadataInformers<'_> {
        MetadataInformers { factory: self }
    }

    /// Returns the informer of a resource of which only the name is known; the same as
    /// [`dynamic().for_resource`](DynamicInformers::for_resource).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    #[doc(alias = "ForResource")]
    #[doc(alias = "GenericInformer")]
    pub async fn for_resource(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<SharedIndexInformer<DynamicObject>, ForResourceError> {
        self.dynamic().for_resource(resource).await
    }

    /// Returns the informer of a resource that is described.
    fn described<K>(&self, resource: &ApiResource, scope: &Scope) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ApiResource> + DeserializeOwned + Send + Sync + 'static,
    {
        self.shared(Some(resource), *scope == Scope::Namespaced, resource, |list_watch, options| {
            SharedIndexInformer::over(Arc::new(list_watch.cast()), options)
        })
    }
}

/// The informers of dynamic objects: of resources that are known only when the program runs, or
/// whose content doesn't matter.
///
/// A dynamic object holds its content as a tree of JSON values, which takes several times the
/// memory of a type that says what is in it. Where metadata is enough, take [`MetadataInformers`].
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use informer_factory::SharedInformerFactory;
/// use kube::core::GroupVersionResource;
///
/// let factory = SharedInformerFactory::new(client);
/// let cron_tabs = GroupVersionResource::gvr("stable.example.com", "v1", "crontabs");
/// let cron_tabs = factory.dynamic().for_resource(&cron_tabs).await?;
/// let by_image = cron_tabs.add_index("image", |tab| tab.data["spec"]["image"].as_str().map(str::to_owned))?;
/// factory.start();
/// factory.wait_for_cache_sync().await?;
/// println!("{} run nginx", by_image.get("nginx").len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DynamicInformers<'a> {
    factory: &'a SharedInformerFactory,
}

impl DynamicInformers<'_> {
    /// Returns the informer of a resource; it is created on first use. `scope` has the same meaning
    /// as for kube's `Api::dynamic`; kube's discovery returns it for each resource.
    ///
    /// This sends no request. If the server doesn't serve the resource in that scope, the
    /// informer's health is [`NotServed`](crate::Health::NotServed) until it does.
    #[must_use]
    pub fn resource(&self, resource: &ApiResource, scope: &Scope) -> SharedIndexInformer<DynamicObject> {
        self.factory.described(resource, scope)
    }

    /// Returns the informer of a resource with this group, version and plural. The server's
    /// discovery gives the resource's kind. It is cached for ten minutes, or until a resource is
    /// requested that the cached response lacks.
    ///
    /// # Errors
    /// [`ForResourceError`] if the server doesn't serve the resource, can't list and watch it, or
    /// can't be reached.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    #[doc(alias = "ForResource")]
    pub async fn for_resource(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<SharedIndexInformer<DynamicObject>, ForResourceError> {
        let inner = &self.factory.inner;
        let (resource, scope) = inner.discovery.find(&inner.client, resource).await?;
        Ok(self.resource(&resource, &scope))
    }
}

/// The informers of metadata: names, labels, owners and the like, and nothing else of the objects.
/// The server sends no more, so this is a fraction of the cost.
///
/// ```no_run
/// # fn follow(factory: &informer_factory::SharedInformerFactory) {
/// use k8s_openapi::api::core::v1::Secret;
///
/// let secrets = factory.metadata().of::<Secret>();
/// let by_app = secrets.lister();
/// # drop(by_app);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MetadataInformers<'a> {
    factory: &'a SharedInformerFactory,
}

impl MetadataInformers<'_> {
    /// Returns the informer of the metadata of a type's resource; the same as
    /// `factory.informer::<PartialObjectMeta<K>>()`.
    #[must_use]
    pub fn of<K>(&self) -> SharedIndexInformer<PartialObjectMeta<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.factory.informer()
    }

    /// Returns the informer of the metadata of a resource, as [`DynamicInformers::resource`] does
    /// for whole objects.
    #[must_use]
    pub fn resource(
        &self,
        resource: &ApiResource,
        scope: &Scope,
    ) -> SharedIndexInformer<PartialObjectMeta<DynamicObject>> {
        self.factory.described(resource, scope)
    }

    /// Returns the informer of the metadata of a resource of which only group, version and plural
    /// are known, as [`DynamicInformers::for_resource`] does for whole objects.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    #[doc(alias = "ForResource")]
    pub async fn for_resource(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<SharedIndexInformer<PartialObjectMeta<DynamicObject>>, ForResourceError> {
        let inner = &self.factory.inner;
        let (resource, scope) = inner.discovery.find(&inner.client, resource).await?;
        Ok(self.resource(&resource, &scope))
    }
}
