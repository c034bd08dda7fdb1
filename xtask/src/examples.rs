//! Runs the examples: against the simulator in CI, and against a real API server in `cargo xtask e2e`.

use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::signals::Signals;
use crate::{process, workspace};

/// The examples that [`each`] runs. They end by themselves.
const NAMES: [&str; 13] = [
    "custom_resource",
    "dynamic",
    "index_lookup",
    "informer_alone",
    "kube_runtime",
    "metadata_only",
    "monitor",
    "multi_namespace",
    "own_resync",
    "reflector_alone",
    "sample-controller",
    "slim_view",
    "store_alone",
];

/// The examples that [`each`] does not run. The example `custom-groups` has its own step in CI, and
/// the other three run until Ctrl-C.
#[cfg(test)]
const OTHERS: [&str; 4] = ["async_handler", "controller", "custom-groups", "event_stream"];

/// Runs the examples, by default against the simulator.
pub(crate) fn run(signals: &Signals) -> anyhow::Result<ExitCode> {
    each(|command| Ok(process::exit_code(process::run(command, signals)?)))
}

/// Calls `run` with the command of each example.
pub(crate) fn each(
    mut run: impl FnMut(&mut Command) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    for name in NAMES {
        eprintln!("\nexample {name}:");
        let mut command = workspace::cargo();
        // Without `--package`, cargo selects the same features of dependencies as for all tests.
        command.args(["run", "--quiet", "--example", name]);
        if run(&mut command)? != ExitCode::SUCCESS {
            bail!("the example `{name}` failed; its message is above");
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_run() {
        let manifest = std::fs::read_to_string(workspace::root().join("examples/Cargo.toml"));
        let manifest = manifest.expect("the examples have a manifest");
        let names = manifest.split("[[example]]").skip(1).filter_map(|entry| entry.split('"').nth(1));
        let names: Vec<_> = names.filter(|name| !OTHERS.contains(name)).collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn single_file_examples_have_at_most_120_lines() {
        for name in NAMES {
            let path = workspace::root().join("examples").join(name);
            if path.join("main.rs").is_file() {
                continue;
            }
            let path = path.with_extension("rs");
            let lines = std::fs::read_to_string(path).expect("the example exists").lines().count();
            assert!(lines <= 120, "{name} has {lines} lines");
        }
    }
}
