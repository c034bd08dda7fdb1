//! The examples of the README, compiled as tests.

#![doc = include_str!("../README.md")]
