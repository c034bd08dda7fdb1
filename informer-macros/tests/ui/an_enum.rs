//! An enum: objects are structs.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
enum Thing {
    A,
}

fn main() {}
