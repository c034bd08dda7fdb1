//! A group that is not a DNS domain.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "Example.com", version = "v1", kind = "Thing", namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
