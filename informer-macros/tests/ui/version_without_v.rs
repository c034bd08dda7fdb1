//! A version that is only a number.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "1.0", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
