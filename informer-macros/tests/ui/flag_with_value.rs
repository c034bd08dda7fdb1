//! A flag with a value.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced = true)]
struct Thing {
    metadata: (),
}

fn main() {}
