//! A view and a resource of one's own whose accessors are given, and those of kinds that the factory has.

use informer_macros::Informer;

#[derive(Informer)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced, accessor = "nodes")]
struct Thing {
    metadata: (),
}

#[derive(Informer)]
#[informer(own_resource, group = "apps", version = "v1", accessor = "daemon_sets")]
struct Other {
    metadata: (),
}

fn main() {}
