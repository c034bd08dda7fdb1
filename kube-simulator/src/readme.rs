//! Compiles the examples of the README.

#![doc = include_str!("../README.md")]
