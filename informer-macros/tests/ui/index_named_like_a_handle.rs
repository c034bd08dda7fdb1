//! An index whose lookup method equals the handle of another index.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", path = "spec.image"), index(name = "by_image_index", path = "metadata.name"))]
struct Thing {
    metadata: (),
}

fn main() {}
