//! An unknown attribute that is similar to a known one.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(grop = "example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
