//! An unknown attribute of an index.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", pth = "spec.image"))]
struct Thing {
    metadata: (),
}

fn main() {}
