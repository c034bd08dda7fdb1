//! A kind of a group that needs nobody to open it.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "apps", version = "v1", kind = "Deployment", namespaced, beside = Other)]
struct Thing {
    metadata: (),
}

fn main() {}
