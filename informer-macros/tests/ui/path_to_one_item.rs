//! A path to one item of a list.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", path = "spec.containers[0].image"))]
struct Thing {
    metadata: (),
}

fn main() {}
