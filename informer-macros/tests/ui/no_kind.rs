//! A view that does not say of which kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
