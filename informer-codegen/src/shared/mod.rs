//! The modules that generate accessors: methods that return informers, such as
//! `factory.core().v1().pods()`. This crate uses the modules for custom resources. For Kubernetes'
//! built-in kinds, `cargo xtask codegen` uses them.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

pub(crate) mod expand;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod gate;
pub(crate) mod model;
pub(crate) mod names;
