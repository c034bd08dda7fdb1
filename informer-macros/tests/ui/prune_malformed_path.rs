//! A malformed pruned path.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, prune("spec..template"))]
struct Thing {
    metadata: (),
}

fn main() {}
