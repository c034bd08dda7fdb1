//! `prune` without parentheses.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, prune = "status")]
struct Thing {
    metadata: (),
}

fn main() {}
