//! A view that does not say of what.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(namespaced)]
struct Thing {
    metadata: (),
}

fn main() {}
