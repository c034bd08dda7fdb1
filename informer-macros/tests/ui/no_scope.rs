//! A view without a scope.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing")]
struct Thing {
    metadata: (),
}

fn main() {}
