//! A tuple struct: objects need named fields.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing(String);

fn main() {}
