//! A string value without quotes.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = Thing, namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
