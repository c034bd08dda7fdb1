//! The deterministic simulation: a server, informers and their handlers in one thread, on a paused
//! clock. All random writes and faults come from one seed. The server's whole history is the
//! reference for all checks.
//!
//! A failing seed prints its history, and each run with this seed has the same history.
//! `INFORMER_SEEDS` sets the number of seeds and `INFORMER_SEED` the first seed; `cargo xtask
//! simulate` sets both.

mod bugs;
mod history;
mod informer;
mod item;
mod late;
mod network;
mod recorder;
mod run;
mod seeds;
mod truth;
mod writer;

use bugs::Bug;
use run::run;

#[test]
fn i9_informers_recover_from_random_faults() {
    let (from, count) = (seeds::from_env("INFORMER_SEED", 0), seeds::from_env("INFORMER_SEEDS", 200));
    let summary = seeds::try_all(from..from + count);
    println!("{summary}");
}

#[test]
#[ignore = "prints a history without checks: `cargo xtask simulate --print`"]
fn print_history_of_one_seed() {
    println!("{}", run(seeds::from_env("INFORMER_SEED", 0), None).history.print());
}

#[test]
fn same_seed_gives_the_same_history() {
    for seed in 1_000..1_005 {
        let (first, second) = (run(seed, None).history.print(), run(seed, None).history.print());
        let differs = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}

/// The number of seeds within which the simulation must find each planted bug.
const ENOUGH: u64 = 100;

fn assert_found(bug: Bug) {
    let seed = seeds::first_to_find(bug, 0..ENOUGH);
    println!("{bug:?}: found by seed {seed:?}");
    assert!(seed.is_some(), "none of {ENOUGH} seeds finds {bug:?}");
}

#[test]
fn failing_seed_prints_its_history_and_repeats() {
    let bug = Bug::SkippedDeletion;
    let seed = seeds::first_to_find(bug, 0..ENOUGH).expect("the bug is found");
    let (first, second) = (run(seed, Some(bug)), run(seed, Some(bug)));
    let report = seeds::report(seed, &first);
    assert_eq!(report, seeds::report(seed, &second));
    let violation = &first.violations[0];
    let key = violation.key.as_deref().expect("the violation is about an object");
    assert!(report.starts_with(&format!("seed {seed} fails; ")), "{report}");
    assert!(report.contains(&format!("- {key}: {}", violation.text)), "{report}");
    assert!(
        report.lines().filter(|line| line.contains(key)).count() > 2,
        "the history of {key} is missing: {report}"
    );
    assert!(report.contains(&format!("INFORMER_SEED={seed} INFORMER_SEEDS=1")), "{report}");
}

#[test]
fn simulation_finds_skipped_deletions() {
    assert_found(Bug::SkippedDeletion);
}

#[test]
fn simulation_finds_skipped_events() {
    assert_found(Bug::SkippedEvent);
}

#[test]
fn simulation_finds_a_version_moved_by_a_failed_decode() {
    assert_found(Bug::AdvancedAfterFailedDecode);
}

#[test]
fn simulation_finds_lost_wake_ups() {
    assert_found(Bug::LostWakeUp);
}

#[test]
fn simulation_finds_repeated_old_events() {
    assert_found(Bug::RepeatedOldEvent);
}

#[test]
fn simulation_finds_a_missing_list_after_410() {
    assert_found(Bug::NoListAfterExpiry);
}

#[test]
fn simulation_finds_lost_items_of_lists() {
    assert_found(Bug::LostListItem);
}

#[test]
fn simulation_finds_a_partial_list_taken_as_complete() {
    assert_found(Bug::PartialListTakenAsComplete);
}

#[test]
fn simulation_finds_lists_with_a_too_new_version() {
    assert_found(Bug::ListVersionTooNew);
}

#[test]
fn simulation_finds_a_watermark_before_its_events() {
    assert_found(Bug::WatermarkTooEarly);
}
