//! A view whose default accessor, from the name of the type, is the accessor of another built-in kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct Endpoint {
    metadata: (),
}

fn main() {}
