//! `beside` in a built-in group, which the factory opens.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "apps", version = "v1", kind = "Deployment", namespaced, beside = Other)]
struct Thing {
    metadata: (),
}

fn main() {}
