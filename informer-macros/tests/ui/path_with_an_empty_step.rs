//! A path with an empty segment.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", path = "spec..image"))]
struct Thing {
    metadata: (),
}

fn main() {}
