//! A kind in lower case.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "things", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
