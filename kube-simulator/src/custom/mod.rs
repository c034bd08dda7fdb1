//! Custom resource definitions, as `apiextensions.k8s.io/v1` has them: from their JSON to what is served.

mod conditions;
mod definition;

pub(crate) use conditions::accept;
pub(crate) use definition::Definition;

/// Where definitions are served.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
