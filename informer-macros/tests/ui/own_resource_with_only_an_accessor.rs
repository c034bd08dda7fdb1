//! An `own_resource` type with an accessor and without group and version.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, accessor = "things")]
struct Thing {
    metadata: (),
}

fn main() {}
