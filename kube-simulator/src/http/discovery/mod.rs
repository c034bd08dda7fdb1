//! Discovery of groups, versions and resources.
//!
//! `kubectl` requests aggregated documents (`apidiscovery.k8s.io`); older clients request separate
//! documents.

mod aggregated;
mod documents;
mod group;
mod review;

pub(crate) use aggregated::aggregated;
pub(crate) use documents::{core_versions, group, groups, paths, resources};
pub(crate) use group::{GroupVersion, group_versions, is_served};
pub(crate) use review::{Review, has_reviews, review};
