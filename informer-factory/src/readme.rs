//! The examples in READMEs and in the migration guide, as tests of the documentation.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../../informer-macros/README.md")]
#![cfg_attr(feature = "kube-runtime", doc = include_str!("../../docs/migration.md"))]
