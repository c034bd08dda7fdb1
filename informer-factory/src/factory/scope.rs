//! Scopes: [`InformerScope`] is determined by the object type, and handles of a factory narrow it:
//! `factory.in_namespace("shop").with_labels("app=web")`.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};

use super::SharedInformerFactory;

/// The scope of a resource that can be listed and watched: in a namespace, or in the cluster.
///
/// A subresource has no list, and so no informer:
///
/// ```compile_fail,E0277
/// # fn follow(factory: &informer_factory::SharedInformerFactory) {
/// let scales = factory.informer::<k8s_openapi::api::autoscaling::v1::Scale>();
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "a resource of scope `{Self}` can't be listed and watched by a typed informer",
    note = "typed informers are for resources in namespaces and for cluster-scoped ones; \
            for others there are `factory.dynamic()` and `factory.metadata()`"
)]
pub trait InformerScope: sealed::Sealed {
    /// The namespace to ask in, where the factory is limited to `namespace`.
    fn namespace(namespace: Option<&str>) -> Option<&str>;

    /// Whether it is in namespaces.
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
    #[expect(unnameable_types, reason = "nobody else is to implement it")]
    pub trait Sealed {}
    impl Sealed for super::NamespaceResourceScope {}
    impl Sealed for super::ClusterResourceScope {}
}

/// The requested part of a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) namespace: Where,
    /// Selectors that replace the factory's.
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
}

/// In which namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) enum Where {
    #[default]
    Everywhere,
    In(String),
    /// In the namespaces that the factory watches separately.
    Followed,
}

impl Where {
    /// Returns the namespace of this name; an empty name means all namespaces.
    pub(super) fn named(namespace: &str) -> Self {
        if namespace.is_empty() { Self::Everywhere } else { Self::In(namespace.to_owned()) }
    }
}

impl Scope {
    /// Returns the scope for a namespaced or a cluster-scoped resource.
    pub(super) fn of(&self, is_namespaced: bool) -> Self {
        let namespace = if is_namespaced { self.namespace.clone() } else { Where::Everywhere };
        Self { namespace, ..self.clone() }
    }
}

/// Other scopes than the factory's own. Each method returns another handle to the same factory and
/// its informers, on which every accessor works; only the scope of the requested informers differs.
/// Starting ([`start`](SharedInformerFactory::start)), stopping
/// ([`shutdown`](SharedInformerFactory::shutdown)) and waiting
/// ([`wait_for_cache_sync`](SharedInformerFactory::wait_for_cache_sync)) concern all informers of
/// the factory.
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
/// Informers with different texts of selectors are different: `a,b` and `b,a` are two.
impl SharedInformerFactory {
    /// Returns a handle that asks for resources in this namespace, or in all if its name is empty.
    /// Cluster-scoped resources are not affected.
    #[must_use]
    #[doc(alias = "WithNamespace")]
    pub fn in_namespace(&self, namespace: &str) -> Self {
        self.with_scope(Scope { namespace: Where::named(namespace), ..self.scope.clone() })
    }

    /// Returns a handle that asks for resources in all namespaces.
    #[must_use]
    pub fn in_all_namespaces(&self) -> Self {
        self.in_namespace("")
    }

    /// Returns a handle that asks for objects whose labels match, as in `app=web,tier!=cache`;
    /// empty: whatever their labels are. It replaces any label selector of the factory or handle.
    ///
    /// The server checks the selector. If it is invalid, the informer's health has the error (400).
    #[must_use]
    pub fn with_labels(&self, selector: &str) -> Self {
        self.with_scope(Scope { labels: Some(selector.trim().to_owned()), ..self.scope.clone() })
    }

    /// Returns a handle that asks for objects whose fields match, as in `spec.nodeName=node-1`;
    /// empty: whatever their fields are. It replaces any field selector of the factory or handle.
    ///
    /// The server decides which fields are supported. For others, the informer's health has the
    /// error (400).
    #[must_use]
    pub fn with_fields(&self, selector: &str) -> Self {
        self.with_scope(Scope { fields: Some(selector.trim().to_owned()), ..self.scope.clone() })
    }

    fn with_scope(&self, mut scope: Scope) -> Self {
        if self.inner.config.tweak_list_options.is_none() {
            // Then an empty selector is the same as none.
            for selector in [&mut scope.labels, &mut scope.fields] {
                selector.take_if(|selector| selector.is_empty());
            }
        }
        Self { inner: self.inner.clone(), scope }
    }
}
