//! A client program of `cargo xtask bench wire`: an informer of this workspace, with the system's
//! allocator.

mod informer;
mod meter;
mod protocol;

fn main() -> anyhow::Result<()> {
    informer::main()
}
