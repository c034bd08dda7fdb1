//! `cargo xtask mutants`: plants bugs in a copy of the sources, one at a time. The simulation must find some of them,
//! and each invariant has a bug that its own tests must find. A bug whose source text has changed is an error.

mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use self::table::MUTANTS;
use crate::signals::Signals;
use crate::{process, simulate, workspace};

/// Timeout of the simulation or the tests with a bug. A timeout also counts as found.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The seeds of the simulation for each bug.
const SEEDS: simulate::Args = simulate::Args::of(200, 0);

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Plant only bugs with this text in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// The tests that must find a bug.
enum FoundBy {
    Simulation,
    /// The tests of an invariant, such as `i1_`, in one package.
    Tests(&'static str, &'static str),
}

/// A bug: replaces a text that occurs once in a file.
struct Mutant {
    found_by: FoundBy,
    name: &'static str,
    file: &'static str,
    text: &'static str,
    becomes: &'static str,
}

/// The result for one bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Found,
    Hung,
    Missed,
}

/// Plants each bug in turn. Fails if one is not found.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let copy = workspace::root().join("target").join("mutants").join("source");
    copy_sources(&copy)?;
    let mut missed = 0;
    for mutant in MUTANTS.iter().filter(|mutant| mutant.name.contains(&args.only)) {
        let began = Instant::now();
        let verdict = mutant.try_out(&copy, signals)?;
        let by = mutant.found_by.title();
        eprintln!("{verdict:?} after {:.0?} by {by}: {}", began.elapsed(), mutant.name);
        missed += u32::from(verdict == Verdict::Missed);
    }
    if missed > 0 {
        bail!("{missed} bugs were not found")
    }
    Ok(ExitCode::SUCCESS)
}

impl FoundBy {
    /// Returns the cargo command of the tests, without a filter.
    fn command(&self) -> Command {
        match self {
            Self::Simulation => simulate::tests(&SEEDS),
            Self::Tests(_, package) => {
                let mut command = workspace::cargo();
                command.args(["test", "--package", package, "--lib", "--tests"]);
                command
            }
        }
    }

    fn filter(&self) -> &'static str {
        match self {
            Self::Simulation => "i9_",
            Self::Tests(filter, _) => filter,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Simulation => "the simulation".to_owned(),
            Self::Tests(filter, package) => format!("the tests {filter} of {package}"),
        }
    }
}

impl Mutant {
    fn try_out(&self, copy: &Path, signals: &Signals) -> anyhow::Result<Verdict> {
        let path = copy.join(self.file);
        let original = fs::read_to_string(&path).with_context(|| format!("cannot read {}", self.file))?;
        if original.matches(self.text).count() != 1 {
            bail!(
                "cannot plant the bug `{}`: {} must contain the replaced text exactly once; adapt \
                 xtask/src/mutants/table.rs",
                self.name,
                self.file
            );
        }
        fs::write(&path, original.replacen(self.text, self.becomes, 1))?;
        let verdict = self.judge(copy, signals);
        fs::write(&path, original)?;
        verdict
    }

    fn judge(&self, copy: &Path, signals: &Signals) -> anyhow::Result<Verdict> {
        let built = process::run(in_copy(self.found_by.command(), copy).arg("--no-run"), signals, || Ok(()))?;
        if !built.success() {
            bail!("`{}` does not compile; adapt xtask/src/mutants/table.rs", self.name);
        }
        let began = Instant::now();
        let mut hung = false;
        let mut tests = in_copy(self.found_by.command(), copy);
        let outcome = process::run(tests.args(["--", self.found_by.filter()]), signals, || {
            hung = began.elapsed() > TIMEOUT;
            if hung {
                bail!("the tests hang");
            }
            Ok(())
        });
        match outcome {
            Err(_) if hung => Ok(Verdict::Hung),
            outcome => Ok(if outcome?.success() { Verdict::Missed } else { Verdict::Found }),
        }
    }
}

/// Makes a command run in the copy, with a separate target folder.
fn in_copy(mut command: Command, copy: &Path) -> Command {
    let target = copy.parent().unwrap_or(copy).join("target");
    command.current_dir(copy).env("CARGO_TARGET_DIR", target).stdout(std::process::Stdio::null());
    command
}

/// Copies the tracked files. Unchanged files keep their modification time, so that cargo does not rebuild them.
fn copy_sources(copy: &Path) -> anyhow::Result<()> {
    let root = workspace::root();
    let listed = Command::new("git").current_dir(&root).args(["ls-files", "-z"]).output();
    let listed = listed.context("cannot start `git`, which lists the sources; install git")?;
    let names = String::from_utf8(listed.stdout).context("a file's name is not UTF-8")?;
    for name in names.split_terminator('\0') {
        let (from, to): (PathBuf, PathBuf) = (root.join(name), copy.join(name));
        // Git lists a deleted file until the deletion is committed.
        let Ok(content) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_invariant_has_a_mutant() {
        for invariant in 1..=12 {
            let filter = format!("i{invariant}_");
            let has_it = |mutant: &&Mutant| matches!(mutant.found_by, FoundBy::Tests(of, _) if of == filter);
            assert_eq!(MUTANTS.iter().filter(has_it).count(), 1, "I{invariant}");
        }
    }

    #[test]
    fn every_mutant_matches_its_source_once() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(workspace::root().join(mutant.file)).expect("the file is there");
            assert_eq!(text.matches(mutant.text).count(), 1, "{}, in {}", mutant.name, mutant.file);
        }
    }
}
