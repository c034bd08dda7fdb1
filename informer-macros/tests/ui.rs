//! Mistakes in `#[informer(...)]`: each is one error at its place, which says what to write instead.
//!
//! What is expected is in `tests/ui/*.stderr`; `TRYBUILD=overwrite cargo test -p informer-macros --test ui` writes it anew.

#[test]
fn each_mistake_is_one_error_at_its_position() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
