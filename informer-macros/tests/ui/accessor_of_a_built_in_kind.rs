//! A view whose accessor would be that of the whole kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct Pod {
    metadata: (),
}

fn main() {}
