//! Runs many seeds on all cores, and reports the first failure.

use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::bugs::Bug;
use crate::run::{Outcome, run};

/// The maximum number of printed lines of a failing history.
const SHOWN: usize = 400;

/// Returns the number in the environment variable `name`, or `default` if the variable is not set.
pub(crate) fn from_env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is not a number")),
        Err(_) => default,
    }
}

/// Runs all seeds. Panics with the history of the lowest failing seed. Otherwise returns a summary:
/// the number of seeds, their total time, and the slowest recovery in virtual time.
pub(crate) fn try_all(seeds: Range<u64>) -> String {
    let began = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let slowest = Mutex::new((Duration::ZERO, seeds.start));
    let failed = Mutex::new(None::<(u64, String)>);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.lock().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let outcome = run(seed, None);
                    if outcome.violations.is_empty() {
                        let mut slowest = slowest.lock();
                        *slowest = (*slowest).max((outcome.recovery, seed));
                    } else {
                        let mut failed = failed.lock();
                        if failed.as_ref().is_none_or(|(other, _)| seed < *other) {
                            *failed = Some((seed, report(seed, &outcome)));
                        }
                    }
                }
            });
        }
    });
    if let Some((_, report)) = failed.into_inner() {
        panic!("{report}");
    }
    let (recovery, seed) = slowest.into_inner();
    let (count, took, recovery) =
        (seeds.end - seeds.start, began.elapsed().as_secs_f64(), recovery.as_secs_f64());
    format!(
        "{count} seeds in {took:.1} s; the slowest recovery took {recovery:.1} s of virtual time (seed {seed})"
    )
}

/// Returns the first seed that finds a bug; `None` if no seed finds it. Panics if the simulation
/// with this seed also fails without the bug.
pub(crate) fn first_to_find(bug: Bug, seeds: Range<u64>) -> Option<u64> {
    let found = seeds.into_iter().find(|seed| !run(*seed, Some(bug)).violations.is_empty())?;
    let without = run(found, None);
    assert!(
        without.violations.is_empty(),
        "the seed also fails without the bug: {}",
        report(found, &without)
    );
    Some(found)
}

/// Formats a violation, and the history of its object.
pub(crate) fn report(seed: u64, outcome: &Outcome) -> String {
    let mut report = String::new();
    let key = outcome.violations.iter().find_map(|violation| violation.key.as_deref());
    let history = outcome.history.print_about(key);
    let lines: Vec<_> = history.lines().collect();
    let shown = &lines[lines.len().saturating_sub(SHOWN)..];
    let about = key.unwrap_or("everything");
    // A write to a string cannot fail.
    _ = writeln!(
        report,
        "seed {seed} fails; the last {} of {} lines about {about}:",
        shown.len(),
        lines.len()
    );
    for line in shown {
        _ = writeln!(report, "{line}");
    }
    for violation in outcome.violations.iter().take(10) {
        _ = writeln!(report, "- {}: {}", violation.key.as_deref().unwrap_or("all"), violation.text);
    }
    _ = writeln!(
        report,
        "To repeat this run: INFORMER_SEED={seed} INFORMER_SEEDS=1, or cargo xtask simulate --from {seed} --seeds 1"
    );
    report
}
