//! A view without a field `metadata`.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    spec: String,
}

fn main() {}
