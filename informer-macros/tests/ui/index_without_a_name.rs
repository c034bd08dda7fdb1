//! An index without a name.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(path = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
