//! A group whose accessor equals that of a built-in group.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "networking.istio.io", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
