//! A plural in camel case.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, plural = "Things")]
struct Thing {
    metadata: (),
}

fn main() {}
