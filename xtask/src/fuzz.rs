//! `cargo xtask fuzz`: runs each target in `fuzz/` for a while, starting from its checked-in
//! corpus.
//!
//! New inputs stay in `target/fuzz`; useful ones are copied to `fuzz/corpus` by hand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use crate::signals::Signals;
use crate::{process, workspace};

/// Each target is a file in `fuzz/fuzz_targets`.
const TARGETS: [&str; 6] = ["list", "watch", "protobuf", "response", "continue_token", "selector"];

/// Compiler flags that add the edge counters and comparison tracing that libFuzzer needs.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1";

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Total fuzzing time in seconds, shared by the targets, but at least one second for each; the
    /// build is not included
    #[arg(long, default_value_t = 60)]
    seconds: u64,

    /// The target to fuzz; by default all targets, in turn
    #[arg(long = "target", value_name = "TARGET", value_parser = TARGETS)]
    targets: Vec<String>,
}

impl Args {
    pub(crate) const LONG: Self = Self { seconds: 300, targets: Vec::new() };
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let targets = match &args.targets[..] {
        [] => TARGETS.map(str::to_owned).to_vec(),
        some => some.to_vec(),
    };
    let programs = build(signals)?;
    let seconds = (args.seconds / targets.len() as u64).max(1);
    for target in targets {
        eprintln!("\n== fuzzing {target} for {seconds} s");
        fuzz(&target, &programs, seconds, signals)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn folder() -> PathBuf {
    workspace::root().join("target").join("fuzz")
}

/// Builds one program for each fuzz target. Returns the folder that contains these programs. The
/// build has its own target folder, because [`FLAGS`] apply to all dependencies, too.
fn build(signals: &Signals) -> anyhow::Result<PathBuf> {
    let host = host()?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let mut command = workspace::cargo();
    command
        .args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml"])
        // With an explicit target, build scripts and macros are built without these flags.
        .args(["--target", &host])
        .env("RUSTFLAGS", format!("{flags} {FLAGS}").trim())
        .env("CARGO_TARGET_DIR", folder());
    let problem = "the fuzz targets do not build; see the message above. They also need a C++ compiler";
    process::run_or_fail(&mut command, signals, problem)?;
    Ok(folder().join(host).join("release"))
}

/// Returns the compiler's host triple.
fn host() -> anyhow::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc).arg("-vV").output().context("cannot start `rustc`")?;
    let text = String::from_utf8(output.stdout).context("the output of `rustc -vV` is not UTF-8")?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` printed no host")
}

fn fuzz(target: &str, programs: &Path, seconds: u64, signals: &Signals) -> anyhow::Result<()> {
    let (found, failing) = (folder().join("corpus").join(target), folder().join("failing"));
    for folder in [&found, &failing] {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let mut command = std::process::Command::new(programs.join(target));
    command
        .current_dir(workspace::root())
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/{target}-", failing.display()))
        .args(["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=0"])
        // libFuzzer writes new inputs to the first folder and only reads the others.
        .arg(&found)
        .arg(Path::new("fuzz").join("corpus").join(target));
    let problem = format!(
        "the fuzz target `{target}` found a failing input and wrote it to the folder {}; write a test with \
         the input, and fix the bug",
        failing.display()
    );
    process::run_or_fail(&mut command, signals, &problem)
}
