//! Two mistakes in one attribute cause two errors.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "Example.com", version = "one", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
