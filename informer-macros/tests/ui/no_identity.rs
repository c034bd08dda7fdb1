//! A view without group, version, kind and scope.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
