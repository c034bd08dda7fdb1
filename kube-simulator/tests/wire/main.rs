//! One suite of scenarios in plain HTTP, run against the simulator and against a real
//! kube-apiserver.
//!
//! Each scenario is one function for both servers. If the servers differ, the scenario's row in the suite
//! describes the difference, and the function asserts both behaviors. A plain `cargo test` runs the scenarios
//! against the simulator with a paused clock; `cargo xtask e2e` runs the tests named `server::…`
//! against a kube-apiserver. `docs/wire-scenarios.md` counts the scenarios and lists the
//! differences.

mod answer;
mod cbor;
mod connection;
mod custom;
mod failures;
mod objects;
mod protobuf;
mod scenario;
mod server;
mod subjects;
mod table;
mod target;
mod watch;
mod websocket;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::scenario::Place;

/// The number of scenarios that run concurrently. It is high, because scenarios mostly wait for the
/// server.
const CONCURRENT_SCENARIOS: usize = 16;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(CONCURRENT_SCENARIOS);
    let scenarios = scenario::all();
    let mut trials: Vec<Trial> =
        scenarios.iter().filter_map(|scenario| scenario.trial(Place::Simulator)).collect();
    // No scenario can begin while an exclusive scenario waits until the others have ended. So the
    // exclusive scenarios run last.
    let (exclusive, others): (Vec<_>, Vec<_>) = scenarios.iter().partition(|scenario| scenario.alone);
    trials.extend(others.into_iter().chain(exclusive).filter_map(|scenario| scenario.trial(Place::Server)));
    trials.extend(table::trials(&scenarios));
    libtest_mimic::run(&arguments, trials).exit_code()
}
