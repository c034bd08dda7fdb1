//! Groups of keys, which take turns.

use informer_workqueue::{Priority, Workqueue};

use crate::{take, take_all};

type Key = (&'static str, u32);

fn queue() -> Workqueue<Key> {
    Workqueue::builder().fair_by(|key: &Key| key.0).build()
}

#[test]
fn groups_take_turns_and_keep_their_keys_in_order() {
    let queue = queue();
    for key in [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("b", 2)] {
        queue.add(key);
    }
    assert_eq!(take_all(&queue), [("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("a", 3)]);
}

#[test]
fn busy_group_delays_another_group_by_one_turn() {
    let queue = queue();
    (0..10_000).for_each(|n| queue.add(("busy", n)));
    take(&queue).expect("an item").done();
    queue.add(("calm", 0));
    let next = [take(&queue), take(&queue)].map(|item| *item.expect("an item").key());
    assert_eq!(next, [("busy", 1), ("calm", 0)]);
}

#[test]
fn returning_group_queues_after_the_others() {
    let queue = queue();
    queue.add(("a", 1));
    queue.add(("b", 1));
    queue.add(("b", 2));
    take(&queue).expect("an item").done();
    queue.add(("a", 2));
    assert_eq!(take_all(&queue), [("b", 1), ("a", 2), ("b", 2)]);
}

#[test]
fn turns_are_taken_within_each_priority() {
    let queue = queue();
    for n in 0..2 {
        queue.add_with_priority(("a", n), Priority::Low);
        queue.add(("a", 10 + n));
    }
    queue.add(("b", 10));
    queue.add_with_priority(("b", 0), Priority::Low);
    assert_eq!(take_all(&queue), [("a", 10), ("b", 10), ("a", 11), ("a", 0), ("b", 0), ("a", 1)]);
}

#[test]
fn promoted_key_moves_to_the_lane_of_its_new_priority() {
    let queue = queue();
    queue.add_with_priority(("a", 1), Priority::Low);
    queue.add_with_priority(("b", 1), Priority::Low);
    queue.add(("a", 1));
    queue.add(("c", 1));
    queue.add_with_priority(("a", 2), Priority::Low);
    assert_eq!(take_all(&queue), [("a", 1), ("c", 1), ("b", 1), ("a", 2)]);
}
