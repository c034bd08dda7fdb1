//! Compiles the example of the README.
#![doc = include_str!("../README.md")]
