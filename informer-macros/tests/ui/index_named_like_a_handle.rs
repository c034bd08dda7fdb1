//! An index whose lookup method has the name of another index's handle method.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", path = "spec.image"), index(name = "by_image_index", path = "metadata.name"))]
struct Thing {
    metadata: (),
}

fn main() {}
