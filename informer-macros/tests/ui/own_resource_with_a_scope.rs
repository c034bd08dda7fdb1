//! A scope on an `own_resource` type, which defines its own.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "example.com", version = "v1", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
