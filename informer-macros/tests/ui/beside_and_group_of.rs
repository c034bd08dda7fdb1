//! `beside` together with `group_of`.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, beside = Other, group_of = Other)]
struct Thing {
    metadata: (),
}

fn main() {}
