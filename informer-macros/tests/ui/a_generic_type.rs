//! A generic type: an informer needs one concrete type.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing<T> {
    metadata: T,
}

fn main() {}
