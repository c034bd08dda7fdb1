//! `no_accessor` together with `accessor`.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "a.example.com", version = "v1", kind = "Thing", namespaced, no_accessor, accessor = "things")]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
