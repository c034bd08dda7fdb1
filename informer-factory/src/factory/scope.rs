//! [`InformerScope`]: whether a resource lives in namespaces, as its type tells.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};

/// The scope of a resource that can be listed and watched.
#[diagnostic::on_unimplemented(
    message = "a resource of scope `{Self}` can't be listed and watched by a typed informer",
    note = "typed informers are for resources in namespaces and for cluster-scoped ones"
)]
pub trait InformerScope: sealed::Sealed {
    /// The namespace to ask in, where the factory is limited to `namespace`.
    fn namespace(namespace: Option<&str>) -> Option<&str>;
}

impl InformerScope for NamespaceResourceScope {
    fn namespace(namespace: Option<&str>) -> Option<&str> {
        namespace
    }
}

impl InformerScope for ClusterResourceScope {
    fn namespace(_: Option<&str>) -> Option<&str> {
        None
    }
}

mod sealed {
    #[expect(unnameable_types, reason = "nobody else is to implement it")]
    pub trait Sealed {}
    impl Sealed for super::NamespaceResourceScope {}
    impl Sealed for super::ClusterResourceScope {}
}
