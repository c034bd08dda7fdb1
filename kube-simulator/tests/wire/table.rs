//! The table in `docs/wire-scenarios.md`, which this module generates from the rows and compares
//! with the file.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};

use crate::scenario::{Place, Scenario};
use crate::target::Target;

/// If this environment variable is set, `docs/wire-scenarios.md` is written instead of compared.
const WRITE: &str = "INFORMER_WRITE_WIRE_TABLE";

const HEAD: &str = "\
# Wire scenarios

A wire scenario describes the behavior of an API server as its clients observe it, in plain HTTP. Each scenario is one function in
`kube-simulator/tests/wire/subjects`. It runs against the simulator in `cargo test`, and against a real kube-apiserver in
`cargo xtask e2e`. This page counts the scenarios per subject, and lists the scenarios in which the two servers differ. Such a
scenario asserts the behavior of each server.

Some scenarios need a real server in a particular state:

- With other feature gates: a separate server, with `CBORServingAndStorage` on and `WatchList` off.
- With failures (`kube-simulator/tests/wire/failures.rs`): corrupt objects in etcd keep the watch cache unready or make a
  deletion unreadable, requests occupy all seats of flow control, and further API servers on the same etcd shut down.
- With a controller-manager, as in CI: the scenarios of the garbage collector need it.

`INFORMER_WRITE_WIRE_TABLE=1 cargo test -p kube-simulator --test wire table` writes this file. Without the variable, the command
compares the file with the scenarios.
";

pub(crate) fn trials(scenarios: &[Scenario]) -> Vec<Trial> {
    let (text, names) = (render(scenarios), repeated_name(scenarios));
    vec![
        Trial::test("table::the_table_in_the_docs_is_up_to_date", move || compare(&text)),
        Trial::test("table::scenario_names_are_unique", move || match names {
            Some(name) => Err(Failed::from(format!("two scenarios have the name {name}"))),
            None => Ok(()),
        }),
    ]
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/wire-scenarios.md")
}

fn compare(text: &str) -> Result<(), Failed> {
    if std::env::var_os(WRITE).is_some() {
        return Ok(std::fs::write(file(), text)?);
    }
    if std::fs::read_to_string(file())? == text {
        return Ok(());
    }
    Err(Failed::from(format!(
        "docs/wire-scenarios.md is out of date: run this test again with {WRITE}=1, and commit the file"
    )))
}

fn repeated_name(scenarios: &[Scenario]) -> Option<&'static str> {
    let mut names: Vec<_> = scenarios.iter().map(|scenario| scenario.name).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn render(scenarios: &[Scenario]) -> String {
    let mut text = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n{}\n\n| subject | scenarios |\n|---|---|", summary(scenarios));
    for subject in scenarios.chunk_by(|a, b| a.subject == b.subject) {
        let _ = writeln!(text, "| {} | {} |", sentence(subject[0].subject), subject.len());
    }
    text.push_str("\n## Differences\n\n| subject | scenario | difference |\n|---|---|---|\n");
    scenarios.iter().for_each(|scenario| text.push_str(&row(scenario).unwrap_or_default()));
    text
}

fn summary(scenarios: &[Scenario]) -> String {
    let on = |place| scenarios.iter().filter(|scenario| scenario.runs_on(place)).count();
    let both = scenarios.iter().filter(|scenario| scenario.left_out.is_none()).count();
    let differ = scenarios.iter().filter(|scenario| scenario.difference.is_some()).count();
    let gates = scenarios.iter().filter(|scenario| scenario.target == Target::OtherGates).count();
    format!(
        "Scenarios: {}; on the simulator: {}; on the real server: {}; on both: {both} ({differ} of them with a difference); with \
         other feature gates: {gates}.",
        scenarios.len(),
        on(Place::Simulator),
        on(Place::Server),
    )
}

/// Returns the row of a scenario. Returns `None` if the scenario has no difference and runs in both
/// places.
fn row(scenario: &Scenario) -> Option<String> {
    let remark = match (scenario.difference, scenario.left_out) {
        (Some(difference), _) => difference.to_owned(),
        (None, Some((_, why))) => format!("Left out: {why}."),
        (None, None) => return None,
    };
    Some(format!("| {} | {} | {remark} |\n", sentence(scenario.subject), sentence(scenario.name)))
}

fn sentence(name: &str) -> String {
    let mut text = name.replace('_', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
