//! [`KubeListWatch`]: lists and watches over a [`kube::Client`].
//!
//! Note: a client of `Client::try_from(config)` retries 429, 503 and 504 up to fifteen times, which
//! hides failures from the reflector. Use [`connect`](crate::connect), or set
//! `config.default_retry = false`.

mod body;
mod compression;
mod coverage;
mod gzip;
mod protobuf;
mod request;
mod response;
mod slices;
mod tweaks;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt};
use http::Response;
use http::header::{ACCEPT_ENCODING, HeaderValue};
use informer_core::{
    InNamespace, ListOptions, ListStream, ListWatchError, ListerWatcher, ObjectKey, Storage, WatchOptions,
    WatchStream,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::client::Body;
use kube::core::{PartialObjectMeta, TypeMeta};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::decode::{DEFAULT_MAX_OBJECT_SIZE, Decode, ExpectedType, Form};
use crate::{ListDecoder, PrunePaths, WatchDecoder};
use compression::Compression;
use coverage::Coverage;
use protobuf::Protobuf;
use request::Endpoint;
use slices::Slices;

pub use tweaks::ListTweaks;

/// Lists and watches the objects of one resource, in one namespace or in all.
///
/// If `K` is [`PartialObjectMeta`](kube::core::PartialObjectMeta), only metadata is requested.
///
/// ```no_run
/// use informer_reflector::KubeListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube::Client::try_default().await?;
/// let pods = KubeListWatch::<Pod>::namespaced(client, "shop").label_selector("app=web");
/// # Ok(())
/// # }
/// ```
pub struct KubeListWatch<K> {
    client: Client,
    endpoint: Endpoint,
    expected: ExpectedType,
    coverage: Coverage,
    prune: PrunePaths,
    compression: Compression,
    protobuf: Protobuf,
    max_object_size: usize,
    description: String,
    /// Whether informers watch each namespace separately, with one source per namespace. Set by
    /// `namespace_by_namespace`.
    is_divided: bool,
    form: Form,
    /// The number of bytes received in the bodies of lists and watches, before this source
    /// decompresses them. A clone starts at zero.
    received: Arc<AtomicU64>,
    _object: PhantomData<fn() -> K>,
}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> KubeListWatch<K> {
    /// Creates a source of the objects in all namespaces, or of cluster-scoped objects.
    #[must_use]
    pub fn all(client: Client) -> Self
    where
        K::DynamicType: Default,
    {
        Self::all_with(client, &K::DynamicType::default())
    }

    /// Creates a source of the objects in one namespace, or in all namespaces if the name is empty.
    #[must_use]
    pub fn namespaced(client: Client, namespace: &str) -> Self
    where
        K::DynamicType: Default,
    {
        Self::namespaced_with(client, namespace, &K::DynamicType::default())
    }

    /// Creates a source of the objects in all namespaces, or of cluster-scoped objects. The kind
    /// comes from `dynamic_type`, for types such as [`DynamicObject`](kube::core::DynamicObject).
    #[must_use]
    pub fn all_with(client: Client, dynamic_type: &K::DynamicType) -> Self {
        Self::namespaced_with(client, "", dynamic_type)
    }

    /// Creates a source of the objects in one namespace, or in all namespaces if the name is empty.
    /// The kind comes from `dynamic_type`, for types such as
    /// [`DynamicObject`](kube::core::DynamicObject).
    #[must_use]
    pub fn namespaced_with(client: Client, namespace: &str, dynamic_type: &K::DynamicType) -> Self {
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        let endpoint = Endpoint::new::<K>(namespace, dynamic_type);
        let expected = ExpectedType::of::<K>(dynamic_type);
        Self {
            client,
            protobuf: Protobuf::new(&expected),
            expected,
            coverage: Coverage::new(namespace),
            description: endpoint.to_string(),
            endpoint,
            prune: PrunePaths::default(),
            compression: Compression::wanted(),
            max_object_size: DEFAULT_MAX_OBJECT_SIZE,
            is_divided: false,
            form: Form::Decoded(Decode::of::<K>()),
            received: Arc::default(),
            _object: PhantomData,
        }
    }
}

impl<K> KubeListWatch<K> {
    /// Sets a label selector, such as `app=web,tier!=cache`.
    #[must_use]
    pub fn label_selector(self, selector: impl Into<String>) -> Self {
        self.tweak_list_options(|options| options.label_selector = selector.into())
    }

    /// Sets a field selector, such as `spec.nodeName=node-1`.
    #[must_use]
    pub fn field_selector(self, selector: impl Into<String>) -> Self {
        self.tweak_list_options(|options| options.field_selector = selector.into())
    }

    /// Changes the parameters of all lists and watches: selectors, and parameters that only some
    /// servers support.
    ///
    /// `tweak` is called once, immediately, because all pages and watches must select the same
    /// objects. client-go calls it for each request.
    #[must_use]
    pub fn tweak_list_options(mut self, tweak: impl FnOnce(&mut ListTweaks)) -> Self {
        tweak(&mut self.endpoint.tweaks);
        self.coverage.set_label_selector(&self.endpoint.tweaks.label_selector);
        self.coverage.set_field_selector(&self.endpoint.tweaks.field_selector);
        self.description = self.endpoint.to_string();
        self
    }

    /// Sets a prefix for the resource in log and error messages, as in `scheduler/pods`. Default:
    /// none.
    #[must_use]
    #[doc(alias = "WithInformerName")]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.endpoint.name = Some(name.into());
        self.description = self.endpoint.to_string();
        self
    }

    /// Makes informers watch each namespace separately. An informer begins without namespaces; the
    /// program adds namespaces while the informer runs. Call this method on a source of
    /// [`all`](Self::all) namespaces. The method affects only informers: a standalone reflector
    /// lists and watches all namespaces at once.
    #[must_use]
    pub fn namespace_by_namespace(mut self) -> Self {
        self.is_divided = true;
        self
    }

    fn in_namespace(&self, namespace: &str) -> Self {
        let endpoint = self.endpoint.in_namespace(namespace);
        let coverage = self.coverage.in_namespace(namespace);
        Self { coverage, description: endpoint.to_string(), endpoint, is_divided: false, ..self.clone() }
    }

    fn metadata_of(
        &self,
        mut endpoint: Endpoint,
        coverage: Coverage,
        prune: PrunePaths,
    ) -> Arc<KubeListWatch<PartialObjectMeta>> {
        endpoint.metadata_only = true;
        let expected = self.expected.clone().metadata_only();
        Arc::new(KubeListWatch {
            client: self.client.clone(),
            protobuf: Protobuf::new(&expected),
            expected,
            coverage,
            prune,
            compression: self.compression.clone(),
            max_object_size: self.max_object_size,
            description: endpoint.to_string(),
            endpoint,
            is_divided: false,
            form: Form::Decoded(Decode::of::<PartialObjectMeta>()),
            received: Arc::default(),
            _object: PhantomData,
        })
    }

    /// Sets the pruned fields, which are not decoded. Default: `metadata.managedFields`.
    #[must_use]
    pub fn prune(mut self, paths: PrunePaths) -> Self {
        self.prune = paths;
        self
    }

    /// Decodes objects completely, including `metadata.managedFields`.
    #[must_use]
    pub fn keep_managed_fields(self) -> Self {
        self.prune(PrunePaths::none())
    }

    /// Sets the maximum size of an object in a response, in bytes. A list or watch with a larger
    /// object fails. Lists check the limit less exactly: they can accept an object of up to three
    /// times the maximum size, or up to 768 KiB if that is more. Default: 16 MiB.
    ///
    /// Besides the decoded objects, decoding needs memory of at most 40 times the size of the
    /// largest accepted object, even if the server is faulty. etcd limits objects to 1.5 MiB.
    #[must_use]
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_object_size = bytes;
        self
    }

    /// Requests uncompressed responses. By default, the server can use gzip, as with client-go.
    /// Servers compress lists of more than 128 KiB and, from 1.37 on, streaming lists.
    ///
    /// Compression costs the server much more CPU time than the client. It helps on slow networks,
    /// and makes lists slower if the server is near.
    ///
    /// With kube's feature `gzip`, a client decompresses responses itself and can't read compressed
    /// watches. By default, this source detects such a client and requests uncompressed watches.
    #[must_use]
    #[doc(alias = "DisableCompression")]
    pub fn disable_compression(mut self) -> Self {
        self.compression = Compression::unwanted();
        self
    }
}

#[async_trait]
impl<K: 'static> ListerWatcher<K> for KubeListWatch<K> {
    fn description(&self) -> &str {
        &self.description
    }

    fn resource(&self) -> &str {
        self.endpoint.tweaks.resource()
    }

    fn namespace_by_namespace(&self) -> Option<InNamespace<K>> {
        let all = self.is_divided.then(|| self.clone())?;
        Some(Box::new(move |namespace| Arc::new(all.in_namespace(namespace))))
    }

    /// Returns `true`: only a streaming list itself shows whether the server supports streaming.
    fn can_stream_lists(&self) -> bool {
        true
    }

    /// Returns whether the namespace and the selectors match. Of the field selector, compares only
    /// `metadata.name` and `metadata.namespace`. Ignores label selectors with `>` or `<`, field
    /// selectors with a backslash, and parameters such as shard selectors.
    fn covers(&self, object: &ObjectMeta) -> bool {
        self.coverage.includes(object)
    }

    /// Returns a source that decodes only type, name, namespace, UID and resource version of each
    /// object. Never returns `None`.
    fn metadata_only(&self) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        let coverage = self.coverage.clone();
        Some(self.metadata_of(self.endpoint.clone(), coverage, PrunePaths::identity_only()))
    }

    fn object_metadata(&self, object: &ObjectKey) -> Option<Arc<dyn ListerWatcher<PartialObjectMeta>>> {
        let endpoint = self.endpoint.of_object(object)?;
        let coverage = Coverage::new(endpoint.namespace.as_deref());
        Some(self.metadata_of(endpoint, coverage, PrunePaths::default()))
    }

    fn with_storage(&self, storage: Storage) -> Option<Arc<dyn ListerWatcher<K>>> {
        let form = self.form.with_storage(storage, &self.expected);
        Some(Arc::new(Self { form, received: Arc::clone(&self.received), ..self.clone() }))
    }

    fn received_bytes(&self) -> Option<Arc<AtomicU64>> {
        Some(Arc::clone(&self.received))
    }

    async fn list(&self, options: ListOptions) -> Result<ListStream<K>, ListWatchError> {
        let encodings = self.compression.of_lists();
        let response =
            self.send(&encodings, |protobuf| self.endpoint.list_request(&options, protobuf)).await?;
        let encoding = response::encoding_of(response.headers());
        let decoder = ListDecoder::with(self.form.clone(), self.prune.clone())
            .encoding(encoding)
            .max_object_size(self.max_object_size)
            .expecting(self.expected.clone());
        let resource =
            TypeMeta { api_version: self.expected.api_version.clone(), kind: self.expected.kind.clone() };
        let protobuf = self.protobuf.clone();
        let parts = body::list(Slices::new(response)?.counted_in(&self.received), decoder, resource);
        Ok(parts.inspect_err(move |error| protobuf.observe_failure(encoding, error)).boxed())
    }

    async fn watch(&self, options: WatchOptions) -> Result<WatchStream<K>, ListWatchError> {
        let response = loop {
            let encodings = self.compression.of_watches();
            let response =
                self.send(&encodings, |protobuf| self.endpoint.watch_request(&options, protobuf)).await?;
            // The client or a proxy seems to decompress responses. Request the watch uncompressed.
            if !self.compression.observe_response(&encodings, response.headers()) {
                break response;
            }
        };
        let encoding = response::encoding_of(response.headers());
        let decoder = WatchDecoder::with(self.form.clone(), self.prune.clone())
            .encoding(encoding)
            .max_object_size(self.max_object_size)
            .expecting(self.expected.clone());
        let protobuf = self.protobuf.clone();
        let slices = Slices::new(response)?.counted_in(&self.received);
        let slices = slices.reporting_to(self.compression.clone());
        let batches = body::watch(slices, decoder);
        Ok(batches.inspect_err(move |error| protobuf.observe_failure(encoding, error)).boxed())
    }
}

impl<K> KubeListWatch<K> {
    /// Sends a request. If the server refuses protobuf, sends the request again for JSON. The
    /// argument of `request` is whether to prefer protobuf.
    async fn send(
        &self,
        content_encodings: &HeaderValue,
        request: impl Fn(bool) -> Result<http::Request<Body>, ListWatchError>,
    ) -> Result<Response<Body>, ListWatchError> {
        loop {
            let prefers_protobuf = self.protobuf.is_wanted();
            let mut request = request(prefers_protobuf)?;
            request.headers_mut().insert(ACCEPT_ENCODING, content_encodings.clone());
            match response::send(&self.client, request).await {
                Err(error) if prefers_protobuf && self.protobuf.observe_refusal(&error) => {}
                other => return other,
            }
        }
    }
}

impl<K> Clone for KubeListWatch<K> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<K> KubeListWatch<K> {
    /// Returns a clone of this source. Only the static type of the objects changes, to `T`.
    #[doc(hidden)]
    #[must_use]
    pub fn cast<T>(&self) -> KubeListWatch<T> {
        KubeListWatch {
            client: self.client.clone(),
            endpoint: self.endpoint.clone(),
            expected: self.expected.clone(),
            coverage: self.coverage.clone(),
            prune: self.prune.clone(),
            compression: self.compression.clone(),
            protobuf: self.protobuf.clone(),
            max_object_size: self.max_object_size,
            description: self.description.clone(),
            is_divided: self.is_divided,
            form: self.form.clone(),
            received: Arc::default(),
            _object: PhantomData,
        }
    }
}

impl<K> fmt::Debug for KubeListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeListWatch")
            .field("endpoint", &self.endpoint)
            .field("prune", &self.prune)
            .finish_non_exhaustive()
    }
}
