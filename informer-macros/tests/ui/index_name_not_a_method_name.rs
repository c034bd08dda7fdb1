//! An index name that is not a valid method name.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by-image", path = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
