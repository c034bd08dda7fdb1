//! A version of a built-in group for which the factory has no accessors.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "apps", version = "v1beta2", kind = "Deployment", namespaced)]
struct OldDeployment {
    metadata: (),
}

fn main() {}
