//! The benchmark programs: ours, built by cargo, and client-go's, built by Go from `xtask/clientgo`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use tempfile::TempDir;

use super::cases::{CASES, PARTS, Part};
use super::figures::Figures;
use crate::signals::Signals;
use crate::{client_go, process, workspace};

/// The choice between short measurements (option `--quick`) and full measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    Quick,
    Full,
}

/// Builds our benchmarks, so that no compiler runs during a measurement.
pub(crate) fn build_ours(signals: &Signals) -> anyhow::Result<()> {
    for part in PARTS {
        let problem =
            format!("bench `{}` of {} does not build; see the message above", part.bench, part.package);
        process::run_or_fail(cargo_bench(part).arg("--no-run"), signals, &problem)?;
    }
    Ok(())
}

pub(crate) fn measure_ours(
    part: &Part,
    effort: Effort,
    figures: &mut Figures,
    signals: &Signals,
) -> anyhow::Result<()> {
    eprintln!("now measuring the benchmark `{}` of this workspace", part.bench);
    // A new folder, so that it contains no results of other runs.
    let criterion = TempDir::new().context("cannot create a temporary folder")?;
    let mut command = cargo_bench(part);
    command.arg("--").env("CRITERION_HOME", criterion.path());
    if part.is_criterion {
        command.args(match effort {
            Effort::Quick => ["--warm-up-time=0.1", "--measurement-time=0.2", "--sample-size=10"],
            Effort::Full => ["--warm-up-time=0.5", "--measurement-time=1.5", "--sample-size=30"],
        });
        command.arg(our_cases());
    } else if effort == Effort::Quick {
        command.arg("--quick");
    }
    figures.take_output(&output_of(&mut command, signals)?);
    if part.is_criterion {
        figures.take_criterion(criterion.path())?;
    }
    Ok(())
}

/// Returns criterion's filter argument: a regular expression for the names in [`CASES`].
fn our_cases() -> String {
    let names: Vec<&str> = CASES.iter().map(|case| case.ours).collect();
    format!("^({})$", names.join("|"))
}

fn cargo_bench(part: &Part) -> Command {
    let mut command = workspace::cargo();
    command.args(["bench", "--quiet", "--package", part.package, "--bench", part.bench]);
    command
}

/// The program that measures client-go.
#[derive(Debug)]
pub(crate) struct ClientGo {
    path: PathBuf,
}

impl ClientGo {
    /// Builds the program that measures client-go. Returns `None` if Go is not installed.
    pub(crate) fn build(signals: &Signals) -> anyhow::Result<Option<Self>> {
        let path = client_go::build(".", "clientgobench", signals)
            .context("cannot build the benchmarks of client-go; `--without-go` leaves them out")?;
        if path.is_none() {
            eprintln!(
                "Go is not installed; skipping the measurements of client-go, which need Go 1.26 or newer"
            );
        }
        Ok(path.map(|path| Self { path }))
    }

    /// Runs client-go's cases that `part` selects, and adds their values to `figures`.
    pub(crate) fn measure(
        &self,
        part: &Part,
        effort: Effort,
        figures: &mut Figures,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        eprintln!("now measuring the counterpart of `{}` in client-go", part.bench);
        let mut command = Command::new(&self.path);
        command.args(part.client_go);
        if effort == Effort::Quick {
            command.arg("--quick");
        }
        figures.take_output(&output_of(&mut command, signals)?);
        Ok(())
    }
}

fn output_of(command: &mut Command, signals: &Signals) -> anyhow::Result<String> {
    // A file, because an unread pipe would block a program with much output.
    let file = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    command.stdout(file.reopen()?);
    let status = process::run(command, signals)?;
    if !status.success() {
        bail!("`{}` failed ({status}); see its message above", command.get_program().to_string_lossy());
    }
    std::fs::read_to_string(file.path()).context("the output of a benchmark is not UTF-8")
}
