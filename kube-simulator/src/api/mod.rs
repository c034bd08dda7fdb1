//! The rules of the Kubernetes API, without HTTP.
//!
//! Counterpart: `k8s.io/apiserver/pkg/registry` and the strategies in
//! `k8s.io/kubernetes/pkg/registry`.

pub(crate) mod autoscaling;
pub(crate) mod catalogue;
pub(crate) mod clock;
pub(crate) mod controllers;
pub(crate) mod custom;
pub(crate) mod first_objects;
pub(crate) mod list;
mod naming;
mod numbers;
mod ownership;
pub(crate) mod schema;
pub(crate) mod selector;
mod state;
pub(crate) mod status;
pub(crate) mod writes;

pub(crate) use state::{Api, Behavior};
