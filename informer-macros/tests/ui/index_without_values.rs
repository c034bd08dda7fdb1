//! An index with neither a path nor a function.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image"))]
struct Thing {
    metadata: (),
}

fn main() {}
