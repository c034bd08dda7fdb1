//! Compiles the examples in the READMEs.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../../README.md")]
