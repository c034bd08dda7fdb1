//! A type in quotes.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, beside = "Other")]
struct Thing {
    metadata: (),
}

fn main() {}
