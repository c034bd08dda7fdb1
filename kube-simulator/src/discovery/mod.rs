//! Discovery: what tells clients which groups, versions and resources there are.
//!
//! `kubectl` asks for all at once (`apidiscovery.k8s.io`), older clients document by document. Both are made from the
//! same [`Group`]s, and those from the catalogue at each request; so custom resources appear and vanish by themselves.

mod aggregated;
mod documents;
mod group;
mod review;

pub(crate) use aggregated::aggregated;
pub(crate) use documents::{core_versions, group, groups, paths, resources};
pub(crate) use group::{GroupVersion, group_versions};
pub(crate) use review::{Review, review};
