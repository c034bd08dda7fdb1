//! An `own_resource` type whose default accessor is already the accessor of a built-in kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "apps", version = "v1")]
struct Deployment {
    metadata: (),
}

fn main() {}
