//! Priorities of keys.

use informer_workqueue::{Priority, Workqueue};
use proptest::prelude::*;

use crate::{take, take_all};

const PRIORITIES: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

#[test]
fn higher_priority_goes_first() {
    let queue = Workqueue::new();
    queue.add_with_priority("initial", Priority::Low);
    queue.add("change");
    queue.add_with_priority("urgent", Priority::High);
    assert_eq!(take_all(&queue), ["urgent", "change", "initial"]);
}

#[test]
fn queued_key_can_be_promoted_but_not_demoted() {
    let queue = Workqueue::new();
    queue.add_with_priority("a", Priority::Low);
    queue.add_with_priority("b", Priority::Low);
    queue.add("b");
    queue.add_with_priority("b", Priority::Low);
    assert_eq!(queue.len(), 2);
    assert_eq!(take(&queue).map(|item| item.priority()), Some(Priority::Normal));
}

#[test]
fn returning_key_has_its_highest_new_priority() {
    let queue = Workqueue::new();
    queue.add_with_priority("a", Priority::High);
    let item = take(&queue).expect("an item");
    queue.add_with_priority("a", Priority::Low);
    queue.add("a");
    queue.add_with_priority("a", Priority::Low);
    item.done();
    let item = take(&queue).expect("an item");
    assert_eq!(item.priority(), Priority::Normal);
    item.done();
}

#[test]
fn low_priority_gets_one_of_eleven_turns() {
    let queue = Workqueue::new();
    (0..100).for_each(|key| queue.add_with_priority(key, Priority::Low));
    let mut low = 0;
    for key in 100..1_200 {
        queue.add(key);
        let item = take(&queue).expect("an item");
        low += usize::from(item.priority() == Priority::Low);
        item.done();
    }
    assert_eq!(low, 100);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::order::cases(), ..ProptestConfig::default() })]
    /// For any sequence of adds, the queue passes over a priority with queued keys fewer than
    /// twelve times in a row.
    #[test]
    fn no_priority_starves(adds in prop::collection::vec(prop::collection::vec(0..3_usize, 0..4), 1..200)) {
        let queue = Workqueue::new();
        let mut waiting = [0_usize; 3];
        let mut passed = [0; 3];
        let mut key = 0;
        for round in adds {
            for level in round {
                key += 1;
                queue.add_with_priority(key, PRIORITIES[level]);
                waiting[level] += 1;
            }
            let Some(item) = take(&queue) else { continue };
            let taken = PRIORITIES.iter().position(|other| *other == item.priority()).expect("a known priority");
            waiting[taken] -= 1;
            item.done();
            for level in 0..3 {
                passed[level] = if level == taken || waiting[level] == 0 { 0 } else { passed[level] + 1 };
                prop_assert!(passed[level] < 12, "{:?} has been passed over {} times", PRIORITIES[level], passed[level]);
            }
        }
    }
}

fn cases() -> u32 {
    std::env::var("INFORMER_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}
