//! An `own_resource` type with a group and no version.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "example.com")]
struct Thing {
    metadata: (),
}

fn main() {}
