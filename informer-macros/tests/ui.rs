//! Compile errors of `#[informer(...)]`: each mistake causes one error at its position, with the
//! remedy.
//!
//! `TRYBUILD=overwrite cargo test -p informer-macros --test ui` rewrites the expected errors in
//! `tests/ui/*.stderr`.

#[test]
fn each_mistake_is_one_error_at_its_position() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
