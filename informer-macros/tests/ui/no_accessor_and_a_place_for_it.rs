//! `no_accessor` where it is also said what the accessor is called.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "a.example.com", version = "v1", kind = "Thing", namespaced, no_accessor, accessor = "things")]
struct Thing {
    metadata: ObjectMeta,
}

fn main() {}
