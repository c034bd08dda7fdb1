//! An attribute that there is not, but nearly.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(grop = "example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
