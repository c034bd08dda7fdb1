//! An index whose lookup method would be hidden by an informer's own method of the same name.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "health", path = "status.health"))]
struct Thing {
    metadata: (),
}

fn main() {}
