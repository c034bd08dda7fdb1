//! An index with the name of an index that every store has.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(index(name = "namespace", path = "metadata.namespace"))]
struct Thing {
    metadata: (),
}

fn main() {}
