//! Two indexes with the same name.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", path = "spec.image"), index(name = "by_image", path = "metadata.name"))]
struct Thing {
    metadata: (),
}

fn main() {}
