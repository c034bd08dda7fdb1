//! A client program of `cargo xtask bench wire`: an informer of this workspace, with the allocator
//! mimalloc.

mod informer;
mod meter;
mod protocol;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    informer::main()
}
