//! A view whose accessor would be that of another kind, because of what the type is called.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct Endpoint {
    metadata: (),
}

fn main() {}
