//! An accessor that is named by halves.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "example.com")]
struct Thing {
    metadata: (),
}

fn main() {}
