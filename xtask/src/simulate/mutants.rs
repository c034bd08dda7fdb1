//! Plants bugs in a copy of the sources, one at a time: the simulation must find each of them.
//!
//! These bugs are in the reflector, the queue and the delivery to handlers. Bugs at the interface between client and
//! reflector are in `informer-factory/tests/simulation/bugs.rs`. A bug whose source text has changed is an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::Args;
use crate::signals::Signals;
use crate::{process, workspace};

/// Timeout of the simulation with a bug. A timeout also counts as found.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A bug: replaces a text that occurs once in a file.
struct Mutant {
    name: &'static str,
    file: &'static str,
    text: &'static str,
    becomes: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a relist queues no deletions",
        file: "informer-core/src/delta_fifo/list.rs",
        text: "        self.complete\n",
        becomes: "        self.complete\n            && self.objects.is_empty()\n",
    },
    Mutant {
        name: "changes of a key are queued in reverse",
        file: "informer-core/src/delta_fifo/merge.rs",
        text: "            deltas.push(delta);\n",
        becomes: "            deltas.insert(0, delta);\n",
    },
    Mutant {
        name: "the queue does not wake its consumer",
        file: "informer-core/src/delta_fifo/mod.rs",
        text: "        if became_ready {\n",
        becomes: "        if became_ready && self.state.lock().closed {\n",
    },
    Mutant {
        name: "the queue does not wake its consumer for a single key",
        file: "informer-core/src/delta_fifo/mod.rs",
        text: "(!before.0 && state.is_ready(), ",
        becomes: "(!before.0 && state.is_ready() && state.len() != 1, ",
    },
    Mutant {
        name: "a handler is not woken for a single event",
        file: "informer-core/src/processor/mailbox.rs",
        text: "if state.inbox.is_empty() { None }",
        becomes: "if state.inbox.len() <= 1 { None }",
    },
    Mutant {
        name: "a slow handler does not receive a delete after an update",
        file: "informer-core/src/processor/net_change.rs",
        text: "                Self::One(Event::Deleted(deleted.clone().after(old)))\n",
        becomes: "                drop((deleted, old));\n                return None;\n",
    },
    Mutant {
        name: "a slow handler receives a recreated object without the delete before it",
        file: "informer-core/src/processor/net_change.rs",
        text: "                Self::Recreated(End::Deleted(deleted), object.clone())\n",
        becomes: "                drop(deleted);\n                \
                  Self::One(Event::Added { object: object.clone(), is_in_initial_list: false })\n",
    },
    Mutant {
        name: "a late handler misses an object",
        file: "informer-core/src/processor/mod.rs",
        text: "Box::new(snapshot())",
        becomes: "Box::new(snapshot().skip(1))",
    },
    Mutant {
        name: "existing objects are not marked as initial for a late handler",
        file: "informer-core/src/processor/cursor.rs",
        text: "is_in_initial_list: true }",
        becomes: "is_in_initial_list: false }",
    },
    Mutant {
        name: "a handler is synced before its replay",
        file: "informer-core/src/processor/cursor.rs",
        text: "        // I5: the replay first.\n",
        becomes: "        if std::mem::take(&mut self.replay_completes) {\n            \
                  return Some(Next::InitialComplete);\n        }\n",
    },
    Mutant {
        name: "the store keeps deleted objects",
        file: "informer-factory/src/informer/pipeline.rs",
        text: "self.changes.push(Change::Remove(stored.key().clone()))",
        becomes: "drop(stored)",
    },
    Mutant {
        name: "a recreated object counts as an update",
        file: "informer-factory/src/informer/pipeline.rs",
        text: "        if old.uid() != object.uid() && ",
        becomes: "        if old.ptr_eq(object) && ",
    },
    Mutant {
        name: "only the first two events of a slice are passed on",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        self.store.apply(changes, ",
        becomes: "        let changes = changes.into_iter().take(2).collect();\n        self.store.apply(changes, ",
    },
    Mutant {
        name: "an object that cannot be decoded is skipped silently",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        self.reporter.quarantine(&object);\n        Ok(None)\n",
        becomes: "        Ok(None)\n",
    },
    Mutant {
        name: "the delete of a quarantined object is ignored",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));\n",
        becomes: "            return Ok(None);\n",
    },
    Mutant {
        name: "an expired watch is retried at the same version",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        if version_is_unavailable(&error) {\n",
        becomes: "        if error.is_expired() {\n            return Step::Later(Request::Watch, error);\n        }\n        \
                  if version_is_unavailable(&error) {\n",
    },
];

/// The result for one bug.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Found,
    Hung,
    Missed,
}

/// Plants each bug in turn. Fails if the simulation misses one.
pub(super) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let copy = workspace::root().join("target").join("mutants").join("source");
    copy_sources(&copy)?;
    let mut missed = 0;
    for mutant in MUTANTS.iter().filter(|mutant| mutant.name.contains(&args.only)) {
        let began = Instant::now();
        let verdict = mutant.try_out(&copy, args, signals)?;
        eprintln!("{:?} after {:.0?}: {}", verdict, began.elapsed(), mutant.name);
        missed += u32::from(verdict == Verdict::Missed);
    }
    if missed > 0 {
        bail!("{missed} bugs were not found by {} seeds", args.seeds);
    }
    Ok(ExitCode::SUCCESS)
}

impl Mutant {
    fn try_out(&self, copy: &Path, args: &Args, signals: &Signals) -> anyhow::Result<Verdict> {
        let path = copy.join(self.file);
        let original = fs::read_to_string(&path).with_context(|| format!("cannot read {}", self.file))?;
        if original.matches(self.text).count() != 1 {
            bail!(
                "cannot plant the bug `{}`: {} must contain the replaced text exactly once; adapt \
                 xtask/src/simulate/mutants.rs",
                self.name,
                self.file
            );
        }
        fs::write(&path, original.replacen(self.text, self.becomes, 1))?;
        let verdict = self.judge(copy, args, signals);
        fs::write(&path, original)?;
        verdict
    }

    fn judge(&self, copy: &Path, args: &Args, signals: &Signals) -> anyhow::Result<Verdict> {
        let built = process::run(in_copy(super::tests(args), copy).arg("--no-run"), signals, || Ok(()))?;
        if !built.success() {
            bail!("`{}` does not compile; adapt xtask/src/simulate/mutants.rs", self.name);
        }
        let began = Instant::now();
        let mut hung = false;
        let outcome = process::run(in_copy(super::tests(args), copy).args(["--", "i9_"]), signals, || {
            hung = began.elapsed() > TIMEOUT;
            if hung {
                bail!("the simulation hangs");
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
    fn every_mutant_matches_its_source_once() {
        for mutant in MUTANTS {
            let text = fs::read_to_string(workspace::root().join(mutant.file)).expect("the file is there");
            assert_eq!(text.matches(mutant.text).count(), 1, "{}, in {}", mutant.name, mutant.file);
        }
    }
}
