//! An empty kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
