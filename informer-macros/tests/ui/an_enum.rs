//! An object is a struct.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
enum Thing {
    A,
}

fn main() {}
