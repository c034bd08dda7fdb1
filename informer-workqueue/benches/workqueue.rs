//! What the work queue costs. `cargo bench -p informer-workqueue`.
fn main() {}
