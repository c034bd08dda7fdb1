//! Compiles the examples in the READMEs and in the migration guide.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../../README.md")]
#![doc = include_str!("../../docs/migration.md")]
