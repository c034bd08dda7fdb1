//! Custom resource definitions (`apiextensions.k8s.io/v1`): converts their JSON to served kinds.

mod conditions;
mod definition;

pub(crate) use conditions::{accept, set_terminating};
pub(crate) use definition::{Definition, fill_defaults};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
