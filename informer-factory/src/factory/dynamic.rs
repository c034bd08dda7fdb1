//! [`DynamicInformers`] and [`MetadataInformers`]: informers of untyped objects, and of metadata.
//!
//! client-go has a separate factory for each (dynamic/dynamicinformer, metadata/metadatainformer).
//! Here, one factory creates all informers, so that they share options, start and shutdown.

use std::sync::Arc;

use kube::Resource;
use kube::core::discovery::{ApiResource, Scope};
use kube::core::{DynamicObject, GroupVersionResource, PartialObjectMeta};
use serde::de::DeserializeOwned;

use super::{ForResourceError, SharedInformerFactory};
use crate::{InformerScope, SharedIndexInformer};

impl SharedInformerFactory {
    /// Gives access to informers of [`DynamicObject`]s. They cover only the objects that `self`
    /// selects; see [`in_namespace`](Self::in_namespace) and [`with_labels`](Self::with_labels).
    #[must_use]
    #[doc(alias = "DynamicSharedInformerFactory")]
    #[doc(alias = "dynamicinformer")]
    pub fn dynamic(&self) -> DynamicInformers<'_> {
        DynamicInformers { factory: self }
    }

    /// Gives access to metadata-only informers. They cover only the objects that `self` selects;
    /// see [`in_namespace`](Self::in_namespace) and [`with_labels`](Self::with_labels).
    #[must_use]
    #[doc(alias = "metadatainformer")]
    pub fn metadata(&self) -> MetadataInformers<'_> {
        MetadataInformers { factory: self }
    }

    /// Returns the informer of the resource with this group, version and plural; the same as
    /// [`dynamic().for_resource`](DynamicInformers::for_resource).
    ///
    /// # Errors
    /// [`ForResourceError`] if the server doesn't serve the resource or can't list and watch it, or
    /// if the discovery request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
    #[doc(alias = "ForResource")]
    #[doc(alias = "GenericInformer")]
    pub async fn for_resource(
        &self,
        resource: &GroupVersionResource,
    ) -> Result<SharedIndexInformer<DynamicObject>, ForResourceError> {
        self.dynamic().for_resource(resource).await
    }

    fn described<K>(&self, resource: &ApiResource, scope: &Scope) -> SharedIndexInformer<K>
    where
        K: Resource<DynamicType = ApiResource> + DeserializeOwned + Send + Sync + 'static,
    {
        self.shared(Some(resource), *scope == Scope::Namespaced, resource, |list_watch, options| {
            SharedIndexInformer::over(Arc::new(list_watch.cast()), options)
        })
    }
}

/// Informers of dynamic objects, for resources that are known only at run time or have no Rust
/// type.
///
/// A dynamic object stores its content as a tree of JSON values, which takes several times the
/// memory of a typed object. If metadata is enough, use [`MetadataInformers`].
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
    /// Returns the informer of a resource, and creates it on first use. `scope` is the scope
    /// of the resource: namespaced or cluster. kube's discovery returns both arguments.
    ///
    /// This sends no request. If the server doesn't serve the resource (404), the started informer
    /// retries. Between retries, its health is [`NotServed`](crate::status::Health::NotServed).
    #[must_use]
    pub fn resource(&self, resource: &ApiResource, scope: &Scope) -> SharedIndexInformer<DynamicObject> {
        self.factory.described(resource, scope)
    }

    /// Returns the informer of a resource with this group, version and plural. Kind and scope of
    /// the resource come from the server's discovery API. The factory caches the response for ten
    /// minutes, or until a resource is requested that the cached response lacks.
    ///
    /// # Errors
    /// [`ForResourceError`] if the server doesn't serve the resource or can't list and watch it, or
    /// if the discovery request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
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

/// Metadata-only informers: their objects have names, labels, owners and other metadata, but no
/// spec or status. The server sends only metadata, so these informers take a fraction of the memory
/// and traffic of others.
///
/// ```no_run
/// # fn follow(factory: &informer_factory::SharedInformerFactory) {
/// use k8s_openapi::api::core::v1::Secret;
///
/// let secrets = factory.metadata().of::<Secret>();
/// let lister = secrets.lister();
/// # drop(lister);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MetadataInformers<'a> {
    factory: &'a SharedInformerFactory,
}

impl MetadataInformers<'_> {
    /// Returns the metadata-only informer of the type's resource; the same as
    /// `factory.informer::<PartialObjectMeta<K>>()`.
    #[must_use]
    pub fn of<K>(&self) -> SharedIndexInformer<PartialObjectMeta<K>>
    where
        K: Resource<DynamicType = ()> + Send + Sync + 'static,
        K::Scope: InformerScope,
    {
        self.factory.informer()
    }

    /// Returns the metadata-only informer of a resource. For the arguments, see
    /// [`DynamicInformers::resource`].
    #[must_use]
    pub fn resource(
        &self,
        resource: &ApiResource,
        scope: &Scope,
    ) -> SharedIndexInformer<PartialObjectMeta<DynamicObject>> {
        self.factory.described(resource, scope)
    }

    /// Returns the metadata-only informer of the resource with this group, version and plural. Kind
    /// and scope of the resource come from the server's discovery API.
    ///
    /// # Errors
    /// [`ForResourceError`] if the server doesn't serve the resource or can't list and watch it, or
    /// if the discovery request fails.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future has no effect.
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
