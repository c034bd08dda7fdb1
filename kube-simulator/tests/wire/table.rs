//! The table of all scenarios in `docs/wire-scenarios.md`, written from the rows and compared with the file.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};

use crate::scenario::{Place, Scenario};
use crate::target::Target;

/// Set, the file is written instead of compared.
const WRITE: &str = "INFORMER_WRITE_WIRE_TABLE";

const HEAD: &str = "\
# Wire scenarios

What a client can see of an API server, as scenarios in plain HTTP. Each is one function in
`kube-simulator/tests/wire/subjects`, which runs against the simulator in `cargo test`, and against a real
kube-apiserver in `cargo xtask e2e`. Where the two differ, the last column says how, and the scenario asserts both.

What a server does only with other feature gates is compared with one of its own, which has `CBORServingAndStorage` on and
`WatchList` off, and other objects.

What a server does only when it is in a bad way is brought about on the real one, too (`kube-simulator/tests/wire/trouble.rs`):
its watch cache is kept from being filled, and an object made unreadable, through its etcd; flow control has few places, which
are taken; and further API servers before the same etcd are told to leave. Each of these serves for one scenario. What the
garbage collector does is compared where a controller-manager runs, as in CI.

This file is written by `INFORMER_WRITE_WIRE_TABLE=1 cargo test -p kube-simulator --test wire table`; without the
variable the same command checks it.
";

/// The tests of the table and of the rows themselves.
pub(crate) fn trials(scenarios: &[Scenario]) -> Vec<Trial> {
    let (text, names) = (render(scenarios), repeated_name(scenarios));
    vec![
        Trial::test("table::the_table_in_the_docs_is_up_to_date", move || compare(&text)),
        Trial::test("table::each_name_is_of_one_scenario", move || match names {
            Some(name) => Err(Failed::from(format!("two scenarios are called {name}"))),
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
        "docs/wire-scenarios.md is out of date: run this again with {WRITE}=1, and commit it"
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
    let _ = writeln!(text, "\n{}", summary(scenarios));
    let mut subject = "";
    for scenario in scenarios {
        if scenario.subject != subject {
            subject = scenario.subject;
            let _ = writeln!(text, "\n## {}\n", sentence(subject));
            text.push_str("| scenario | simulator | real server | difference |\n|---|---|---|---|\n");
        }
        text.push_str(&row(scenario));
    }
    text
}

fn summary(scenarios: &[Scenario]) -> String {
    let on = |place| scenarios.iter().filter(|scenario| scenario.runs_on(place)).count();
    let both = scenarios.iter().filter(|scenario| scenario.left_out.is_none()).count();
    let differ = scenarios.iter().filter(|scenario| scenario.difference.is_some()).count();
    format!(
        "Scenarios: {}; on the simulator: {}; on the real server: {}; on both: {both}, of which {differ} differ.",
        scenarios.len(),
        on(Place::Simulator),
        on(Place::Server),
    )
}

fn row(scenario: &Scenario) -> String {
    let ran = |place| if scenario.runs_on(place) { "yes" } else { "no" };
    let remark = match (scenario.difference, scenario.left_out, scenario.target) {
        (Some(difference), ..) => difference.to_owned(),
        (_, Some((_, why)), _) => format!("Left out: {why}."),
        (_, _, Target::OtherGates) => "With other feature gates.".to_owned(),
        _ => String::new(),
    };
    let (simulator, server) = (ran(Place::Simulator), ran(Place::Server));
    format!("| {} | {simulator} | {server} | {remark} |\n", sentence(scenario.name))
}

/// Makes a sentence of a name.
fn sentence(name: &str) -> String {
    let mut text = name.replace('_', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
