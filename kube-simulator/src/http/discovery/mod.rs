//! Discovery of groups, versions and resources.
//!
//! `kubectl` requests aggregated documents (`apidiscovery.k8s.io`), older clients separate ones.
//! Both are built from the same list of [`GroupVersion`]s. The list is built from the catalogue on
//! each request, so that custom resources appear and disappear.

mod aggregated;
mod documents;
mod group;
mod review;

pub(crate) use aggregated::aggregated;
pub(crate) use documents::{core_versions, group, groups, paths, resources};
pub(crate) use group::{GroupVersion, group_versions};
pub(crate) use review::{Review, review};
