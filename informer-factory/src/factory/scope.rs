//! The scope of informers: the namespaces, labels and fields of their objects.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};

use super::SharedInformerFactory;

/// The scope of a resource that informers can list and watch: namespaced or cluster-scoped.
///
/// A subresource cannot be listed, so it has no informer:
///
/// ```compile_fail,E0277
/// # fn follow(factory: &informer_factory::SharedInformerFactory) {
/// let scales = factory.informer::<k8s_openapi::api::autoscaling::v1::Scale>();
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a resource of scope `{Self}` can't be listed and watched by a typed informer",
    note = "typed informers support namespaced and cluster-scoped resources; \
            for other resources, use `factory.dynamic()` or `factory.metadata()`"
)]
pub trait InformerScope: sealed::Sealed {
    /// Returns `namespace` unchanged if resources with this scope are namespaced, and `None` if
    /// they are cluster-scoped.
    fn namespace(namespace: Option<&str>) -> Option<&str>;

    /// Returns whether resources with this scope are namespaced.
    fn is_namespaced() -> bool;
}

impl InformerScope for NamespaceResourceScope {
    fn namespace(namespace: Option<&str>) -> Option<&str> {
        namespace
    }

    fn is_namespaced() -> bool {
        true
    }
}

impl InformerScope for ClusterResourceScope {
    fn namespace(_: Option<&str>) -> Option<&str> {
        None
    }

    fn is_namespaced() -> bool {
        false
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "sealed: other crates must not implement `InformerScope`")]
    pub trait Sealed {}
    impl Sealed for super::NamespaceResourceScope {}
    impl Sealed for super::ClusterResourceScope {}
}

/// The objects of a resource that an informer watches: their namespaces, labels and fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) namespace: NamespaceScope,
    /// The label selector of [`with_labels`](SharedInformerFactory::with_labels). It replaces a
    /// label selector of [`tweak_list_options`](crate::FactoryBuilder::tweak_list_options).
    pub(super) labels: Option<String>,
    /// The field selector of [`with_fields`](SharedInformerFactory::with_fields). It replaces a
    /// field selector of [`tweak_list_options`](crate::FactoryBuilder::tweak_list_options).
    pub(super) fields: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) enum NamespaceScope {
    #[default]
    All,
    One(String),
    /// The namespaces of a factory that was built with
    /// [`FactoryBuilder::namespaces`](crate::FactoryBuilder::namespaces), each with its own watch.
    /// The program can add and remove namespaces at any time.
    Separate,
}

impl NamespaceScope {
    /// Returns the namespace with this name, or all namespaces if the name is empty.
    pub(super) fn named(namespace: &str) -> Self {
        if namespace.is_empty() { Self::All } else { Self::One(namespace.to_owned()) }
    }
}

impl Scope {
    /// Returns this scope, without its namespaces if the resource is cluster-scoped.
    pub(super) fn for_resource(&self, is_namespaced: bool) -> Self {
        let namespace = if is_namespaced { self.namespace.clone() } else { NamespaceScope::All };
        Self { namespace, ..self.clone() }
    }
}

/// Methods that return a handle of the same factory with another scope. Informers that are
/// requested from such a handle have its scope. The scope does not limit
/// [`start`](SharedInformerFactory::start), [`shutdown`](SharedInformerFactory::shutdown),
/// [`wait_for_cache_sync`](SharedInformerFactory::wait_for_cache_sync) and similar methods: they
/// concern all informers of the factory.
///
/// ```no_run
/// # async fn run(client: kube::Client) -> Result<(), informer_factory::NotSynced> {
/// use informer_factory::SharedInformerFactory;
///
/// let factory = SharedInformerFactory::new(client);
/// let all = factory.core().v1().pods();
/// let shop = factory.in_namespace("shop");
/// let web = shop.with_labels("app=web").core().v1().pods();
/// let credentials = shop.with_fields("type=kubernetes.io/tls").core().v1().secrets();
/// factory.start();
/// factory.wait_for_cache_sync().await?;
/// assert!(web.indexer().len() <= all.indexer().len());
/// # drop(credentials);
/// # Ok(())
/// # }
/// ```
///
/// Selectors are compared as strings, so the selectors `a,b` and `b,a` have two separate informers.
impl SharedInformerFactory {
    /// Returns a handle whose informers cover this namespace, or all namespaces if `namespace` is
    /// empty. Cluster-scoped resources are not affected.
    #[must_use]
    #[doc(alias = "WithNamespace")]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        self.with_scope(Scope { namespace: NamespaceScope::named(namespace), ..self.scope.clone() })
    }

    /// Returns a handle whose informers cover all namespaces.
    #[must_use]
    pub fn in_all_namespaces(&self) -> Self {
        self.in_namespace("")
    }

    /// Returns a handle whose informers cover only objects whose labels match `selector`, such as
    /// `app=web,tier!=cache`. The selector replaces any label selector of the factory or handle; an
    /// empty one selects all objects.
    ///
    /// The server checks the selector. If it is invalid, the informer's health contains the
    /// server's error (400).
    #[must_use]
    pub fn with_labels(&self, selector: &str) -> Self {
        self.with_scope(Scope { labels: Some(selector.trim().to_owned()), ..self.scope.clone() })
    }

    /// Returns a handle whose informers cover only objects whose fields match `selector`, such as
    /// `spec.nodeName=node-1`. The selector replaces any field selector of the factory or handle;
    /// an empty one selects all objects.
    ///
    /// The server decides which fields are supported. For other fields, the informer's health
    /// contains the server's error (400).
    #[must_use]
    pub fn with_fields(&self, selector: &str) -> Self {
        self.with_scope(Scope { fields: Some(selector.trim().to_owned()), ..self.scope.clone() })
    }

    fn with_scope(&self, mut scope: Scope) -> Self {
        if self.inner.config.tweak_list_options.is_none() {
            // The factory sets no selectors, so an empty selector overrides nothing and equals no
            // selector.
            for selector in [&mut scope.labels, &mut scope.fields] {
                selector.take_if(|selector| selector.is_empty());
            }
        }
        Self { inner: self.inner.clone(), scope }
    }
}
