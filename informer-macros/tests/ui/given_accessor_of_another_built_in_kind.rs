//! A view and an `own_resource` type whose `accessor` attribute is the accessor of another built-in kind.

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
