//! An index whose handle method an informer's method would hide.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "add", path = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
