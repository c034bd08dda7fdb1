//! A union: objects are structs.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
union Thing {
    a: u8,
}

fn main() {}
