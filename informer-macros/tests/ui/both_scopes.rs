//! `namespaced` together with `cluster`.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, cluster)]
struct Thing {
    metadata: (),
}

fn main() {}
