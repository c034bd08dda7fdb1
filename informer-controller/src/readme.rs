//! The examples in the READMEs and in the migration guide, as tests of the documentation.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../../README.md")]
#![doc = include_str!("../../docs/migration.md")]
