//! [`Machine`]: the processor, the software versions and the date of a benchmark run. They are
//! printed with the results.

use std::fmt;
use std::process::Command;

use anyhow::Context;
use serde::Serialize;

use crate::workspace;

/// The processor, the software versions and the date of a benchmark run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    rust: String,
    /// The versions of Go and client-go; `None` if client-go was not measured.
    go: Option<String>,
    commit: String,
    date: String,
}

impl Machine {
    pub(crate) fn here(with_go: bool) -> anyhow::Result<Self> {
        let changes = output_of("git", &["status", "--porcelain", "--untracked-files=no"])?;
        let changed = if changes.is_empty() { "" } else { " with changes" };
        Ok(Self {
            processor: processor(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            rust: output_of("rustc", &["--version"])?,
            go: if with_go { Some(go_versions()?) } else { None },
            commit: output_of("git", &["rev-parse", "--short", "HEAD"])? + changed,
            date: output_of("date", &["-u", "+%Y-%m-%d"])?,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, rust, go, commit, date } = self;
        let go = go.as_deref().unwrap_or("no Go");
        write!(f, "{cores} cores of {processor}; {rust}; {go}; commit {commit}; {date}")
    }
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name"));
    let name = name.and_then(|line| line.split_once(':')).map_or("an unknown processor", |(_, name)| name);
    name.trim().to_owned()
}

fn go_versions() -> anyhow::Result<String> {
    let go = output_of("go", &["env", "GOVERSION"])?;
    let module = workspace::root().join("xtask/clientgo/go.mod");
    let text =
        std::fs::read_to_string(&module).with_context(|| format!("cannot read {}", module.display()))?;
    Ok(format!("{go}, client-go {}", client_go_version(&text).unwrap_or("of an unknown version")))
}

fn client_go_version(module: &str) -> Option<&str> {
    module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/client-go "))
}

/// Returns the trimmed output of a program.
fn output_of(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(workspace::root())
        .output()
        .with_context(|| format!("cannot start `{program}`"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_go_version_comes_from_go_mod() {
        let module = std::fs::read_to_string(workspace::root().join("xtask/clientgo/go.mod"));
        let module = module.expect("the module is there");
        assert!(client_go_version(&module).is_some_and(|version| version.starts_with("v0.")), "{module}");
    }
}
