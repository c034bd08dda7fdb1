//! An attribute that is given twice.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
#[informer(kind = "Other")]
struct Thing {
    metadata: (),
}

fn main() {}
