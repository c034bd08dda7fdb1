//! [`Fabric8`]: the client with fabric8, which Maven builds from `xtask/wire/fabric8`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::signals::Signals;
use crate::{process, workspace};

/// The built client program with fabric8, a Kubernetes client library for Java.
#[derive(Debug)]
pub(crate) struct Fabric8 {
    class_path: String,
}

/// Returns `None` if Maven or a JDK is not installed.
pub(crate) fn build(signals: &Signals) -> anyhow::Result<Option<Fabric8>> {
    if !is_installed("mvn") || !is_installed("javac") {
        return Ok(None);
    }
    let mut command = Command::new("mvn");
    command
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(manifest())
        // The goals that this client needs. `package` would also run plugins for resources, tests and an archive.
        .args(["compiler:compile", "dependency:build-classpath"])
        // Maven prints errors to standard output, which is for tables here.
        .stdout(Stdio::from(std::io::stderr()));
    let problem = "`mvn` failed, see its message above; it needs JDK 17 or newer and access to Maven \
                   Central; to measure without fabric8, remove `mvn` from PATH";
    process::run_or_fail(&mut command, signals, problem)?;
    let target = workspace::root().join("target/wire-fabric8");
    let dependencies = target.join("class-path");
    let dependencies = std::fs::read_to_string(&dependencies)
        .with_context(|| format!("cannot read {}", dependencies.display()))?;
    let class_path = format!("{}:{}", target.join("classes").display(), dependencies.trim());
    Ok(Some(Fabric8 { class_path }))
}

impl Fabric8 {
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("java");
        command
            // Without this option, a client without memory would wait instead of failing.
            .arg("-XX:+ExitOnOutOfMemoryError")
            // Omits warnings of Vert.x that fabric8 blocks an event loop: it decodes the list there.
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
            .args(["-cp", &self.class_path, "Wire"]);
        command
    }
}

/// Returns the versions of fabric8 and Java.
pub(crate) fn versions() -> anyhow::Result<String> {
    let manifest = manifest();
    let text =
        std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let fabric8 = fabric8_version(&text).unwrap_or("of an unknown version");
    let java = Command::new("java").arg("--version").output().context("cannot start `java`")?;
    let java = String::from_utf8_lossy(&java.stdout);
    Ok(format!("fabric8 {fabric8}, {}", java.lines().next().unwrap_or("Java of an unknown version")))
}

fn fabric8_version(manifest: &str) -> Option<&str> {
    let (_, rest) = manifest.split_once("<fabric8.version>")?;
    Some(rest.split_once('<')?.0)
}

fn manifest() -> PathBuf {
    workspace::root().join("xtask/wire/fabric8/pom.xml")
}

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fabric8_version_comes_from_the_pom() {
        let manifest = std::fs::read_to_string(manifest()).expect("the pom is there");
        let version = fabric8_version(&manifest).expect("the pom has the version");
        assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    }
}
