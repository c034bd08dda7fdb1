//! The examples in READMEs, as tests of the documentation.
#![doc = include_str!("../README.md")]
#![doc = include_str!("../../informer-macros/README.md")]
