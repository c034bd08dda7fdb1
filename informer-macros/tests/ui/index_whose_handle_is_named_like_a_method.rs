//! An index whose handle method has the name of an informer's method, which would hide it.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "add", path = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
