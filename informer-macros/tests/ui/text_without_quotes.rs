//! A name that is to be text.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = Thing, namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
