//! An index whose handle's method would never be called.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "add", path = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
