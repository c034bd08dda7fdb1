//! `cargo xtask mutants`: plants bugs in a copy of the sources, one at a time. With each bug, the
//! simulation or a test of an invariant must fail. Each invariant (I1 to I12) has at least one bug.

mod table;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use self::table::MUTANTS;
use crate::signals::Signals;
use crate::{process, simulate, workspace};

/// Timeout of one run with a planted bug.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The seeds with which the simulation runs for each planted bug: the first 200.
const SEEDS: simulate::Args = simulate::Args::of(200, 0);

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Plant only bugs with this text in their name, or in the name or package of their test, such
    /// as `i9_`
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

/// The test that must fail with a planted bug.
enum FoundBy {
    /// The simulation must fail, or run into its timeout, with at least one of [`SEEDS`].
    Simulation,
    /// One test of an invariant. A timeout does not count as a failure.
    Test {
        package: &'static str,
        /// The cargo arguments that select the test's target, such as `--lib`.
        target: &'static [&'static str],
        /// The path of the test function, such as `delta_fifo::tests::i2_…`. The function's name
        /// begins with the number of the tested invariant.
        name: &'static str,
    },
}

/// A bug to plant: `becomes` replaces `text`, which must occur exactly once in `file`.
struct Mutant {
    found_by: FoundBy,
    name: &'static str,
    file: &'static str,
    text: &'static str,
    becomes: &'static str,
}

#[derive(Debug, PartialEq, Eq)]
enum TestResult {
    Found,
    Hung,
    Missed,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let copy = workspace::root().join("target").join("mutants").join("source");
    workspace::copy_sources(&copy)?;
    let began_all = Instant::now();
    let (mut found, mut missed) = (0, 0);
    for mutant in MUTANTS.iter().filter(|mutant| mutant.is_selected(&args.only)) {
        let began = Instant::now();
        let result = mutant.test(&copy, signals)?;
        let is_found = mutant.found_by.accepts(&result);
        let (by, prefix) = (mutant.found_by.title(), if is_found { "" } else { "NOT FOUND: " });
        eprintln!(
            "{prefix}planted bug `{}`, tested by {by}: {result:?}, after {:.0?}",
            mutant.name,
            began.elapsed()
        );
        found += u32::from(is_found);
        missed += u32::from(!is_found);
    }
    eprintln!("{found} planted bugs were found, {missed} were not, in {:.0?}", began_all.elapsed());
    if found == 0 && missed == 0 {
        bail!(
            "no planted bug has `{}` in its name or in the name of its test; choose another text for --only",
            args.only
        )
    }
    if missed > 0 {
        bail!("{missed} planted bugs were not found by their tests; write tests that fail with them")
    }
    Ok(ExitCode::SUCCESS)
}

impl FoundBy {
    /// Returns the command `cargo test`, without the arguments after `--`.
    fn command(&self) -> Command {
        match self {
            Self::Simulation => simulate::tests(&SEEDS),
            Self::Test { package, target, .. } => {
                let mut command = workspace::cargo();
                command.args(["test", "--package", package]).args(*target);
                command
            }
        }
    }

    /// Returns the arguments after `--`, which select the tests by name.
    fn test_arguments(&self) -> Vec<&'static str> {
        match self {
            Self::Simulation => vec!["i9_"],
            Self::Test { name, .. } => vec!["--exact", name],
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Simulation => "the simulation".to_owned(),
            Self::Test { package, name, .. } => format!("{name} of {package}"),
        }
    }

    fn accepts(&self, result: &TestResult) -> bool {
        match result {
            TestResult::Found => true,
            TestResult::Hung => matches!(self, Self::Simulation),
            TestResult::Missed => false,
        }
    }
}

impl Mutant {
    fn is_selected(&self, text: &str) -> bool {
        self.name.contains(text) || self.found_by.title().contains(text)
    }

    fn test(&self, copy: &Path, signals: &Signals) -> anyhow::Result<TestResult> {
        let path = copy.join(self.file);
        let original = fs::read_to_string(&path).with_context(|| format!("cannot read {}", self.file))?;
        if original.matches(self.text).count() != 1 {
            bail!(
                "cannot plant the bug `{}`: the text that it replaces must occur exactly once in {}; adapt \
                 xtask/src/mutants/table.rs",
                self.name,
                self.file
            );
        }
        fs::write(&path, original.replacen(self.text, self.becomes, 1))?;
        let result = self.run_test(copy, signals);
        fs::write(&path, original)?;
        result
    }

    fn run_test(&self, copy: &Path, signals: &Signals) -> anyhow::Result<TestResult> {
        let mut build = in_copy(self.found_by.command(), copy);
        // A bug may cause warnings, so the messages are printed only if the build fails.
        let messages = copy.with_file_name("build.txt");
        build.args(["--quiet", "--no-run"]).stderr(fs::File::create(&messages)?);
        if !process::run(&mut build, signals)?.success() {
            eprint!("{}", fs::read_to_string(&messages)?);
            bail!(
                "the code with the planted bug `{}` does not compile; adapt the bug in xtask/src/mutants/table.rs",
                self.name
            );
        }
        let began = Instant::now();
        let mut hung = false;
        let mut test = in_copy(self.found_by.command(), copy);
        // The output of a test that is expected to fail is noise.
        test.arg("--").args(self.found_by.test_arguments()).stderr(Stdio::null());
        let outcome = process::run_checked(&mut test, signals, || {
            hung = began.elapsed() > TIMEOUT;
            if hung {
                bail!("the test did not end within {TIMEOUT:?}");
            }
            Ok(())
        });
        match outcome {
            Err(_) if hung => Ok(TestResult::Hung),
            outcome => Ok(if outcome?.success() { TestResult::Missed } else { TestResult::Found }),
        }
    }
}

fn in_copy(mut command: Command, copy: &Path) -> Command {
    let target = copy.parent().unwrap_or(copy).join("target");
    // Each bug changes one file, so incremental builds save most of the time.
    command.current_dir(copy).env("CARGO_INCREMENTAL", "1").env("CARGO_TARGET_DIR", target);
    command.stdout(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns packages and full names of the tests that must find a bug.
    fn tests() -> impl Iterator<Item = (&'static str, &'static str)> {
        MUTANTS.iter().filter_map(|mutant| match mutant.found_by {
            FoundBy::Simulation => None,
            FoundBy::Test { package, name, .. } => Some((package, name)),
        })
    }

    fn function(name: &str) -> &str {
        name.rsplit("::").next().unwrap_or(name)
    }

    #[test]
    fn every_invariant_has_a_mutant() {
        for invariant in 1..=12 {
            let prefix = format!("i{invariant}_");
            assert!(tests().any(|(_, name)| function(name).starts_with(&prefix)), "I{invariant}");
        }
    }

    #[test]
    fn every_test_of_a_mutant_exists() {
        for (package, name) in tests() {
            let definition = format!("fn {}(", function(name));
            let mut grep = Command::new("git");
            grep.current_dir(workspace::root()).args(["grep", "-qF", &definition, "--", package]);
            assert!(grep.status().expect("git is installed").success(), "{name} of {package}");
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
