//! The parts that `cargo xtask codegen` also uses, to generate the accessors of Kubernetes'
//! built-in kinds.
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate)]

pub(crate) mod expand;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod gate;
pub(crate) mod model;
pub(crate) mod names;
