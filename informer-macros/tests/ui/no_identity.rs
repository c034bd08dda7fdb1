//! A view without group, version and kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
