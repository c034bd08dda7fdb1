//! An unknown attribute that is not similar to any known attribute.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, refresh = "1s")]
struct Thing {
    metadata: (),
}

fn main() {}
