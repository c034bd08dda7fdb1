//! The root of this workspace, and cargo commands in it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Returns a command in the workspace's root for the cargo that runs this program.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    remove_package_variables(&mut command);
    command
}

/// Removes the variables that `cargo run` sets for this package. Some build scripts read them, and would run again
/// whenever a variable changes.
pub(crate) fn remove_package_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_package_variable = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name.starts_with("CARGO_BIN_")
        });
        if is_package_variable {
            command.env_remove(name);
        }
    }
}
