//! Where things are in this workspace, and the cargo that runs in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// A cargo command in the workspace's root: the same cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    forget_this_package(&mut command);
    command
}

/// Takes out of the command's environment what `cargo run` says about the package it runs, this
/// one: some build scripts take it for their own, and build again each time it comes or goes.
pub(crate) fn forget_this_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let told = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name.starts_with("CARGO_BIN_")
        });
        if told {
            command.env_remove(name);
        }
    }
}
