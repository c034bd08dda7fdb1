//! A resource of one's own whose accessor would be that of a kind that the factory has.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(own_resource, group = "apps", version = "v1")]
struct Deployment {
    metadata: (),
}

fn main() {}
