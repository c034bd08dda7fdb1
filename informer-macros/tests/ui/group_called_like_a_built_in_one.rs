//! A group whose accessor would be one of Kubernetes' own.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "networking.istio.io", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
