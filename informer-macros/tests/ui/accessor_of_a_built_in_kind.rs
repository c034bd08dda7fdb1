//! A view whose default accessor is already the accessor of its built-in kind.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
struct Pod {
    metadata: (),
}

fn main() {}
