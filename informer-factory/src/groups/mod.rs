//! Typed accessors; generated.
