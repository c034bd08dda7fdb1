//! A group whose accessor would have the name of a built-in group's accessor.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "networking.istio.io", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
