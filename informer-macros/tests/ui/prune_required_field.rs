//! A pruned field that every informer needs.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, prune("status", "metadata.uid"))]
struct Thing {
    metadata: (),
}

fn main() {}
