//! A scope on an `own_resource` type, which already defines its scope.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "example.com", version = "v1", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
