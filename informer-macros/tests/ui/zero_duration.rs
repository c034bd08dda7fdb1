//! A resync period of zero.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "example.com", version = "v1", kind = "Thing", namespaced, default_resync = "0s")]
struct Thing {
    metadata: (),
}

fn main() {}
