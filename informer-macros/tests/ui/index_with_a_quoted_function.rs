//! An index function in quotes.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "by_image", with = "images"))]
struct Thing {
    metadata: (),
}

fn main() {}
