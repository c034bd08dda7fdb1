//! A duration without a unit.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, default_resync = "10")]
struct Thing {
    metadata: (),
}

fn main() {}
