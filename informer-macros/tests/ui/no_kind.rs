//! A view without a kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
