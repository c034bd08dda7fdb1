//! Tests of the cache: which pods count, and until when.

use std::time::Duration;

use super::*;

const ROOM: Resources = Resources { cpu: 1000, memory: 1000, pods: 10 };

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

fn request(cpu: u128) -> Resources {
    Resources { cpu, memory: 10, pods: 1 }
}

/// Returns a cache with two nodes of equal size, and a pod on the first node.
fn cache() -> Cache {
    let mut cache = Cache::default();
    cache.set_node("a", ROOM);
    cache.set_node("b", ROOM);
    cache.observe(&key("there"), &"there".into(), request(300), Some("a"));
    cache
}

#[test]
fn emptiest_node_is_chosen_and_decisions_count_at_once() {
    let mut cache = cache();
    assert_eq!(cache.assume(&key("p"), &"p".into(), request(400)), Choice::Node("b".to_owned()));
    assert_eq!(cache.assume(&key("q"), &"q".into(), request(400)), Choice::Node("a".to_owned()));
    assert_eq!(cache.assume(&key("r"), &"r".into(), request(601)), Choice::NoRoom);
    assert_eq!(cache.sums()["a"], Resources { cpu: 700, memory: 20, pods: 2 });
    assert_eq!(cache.assumed(), 2);
}

#[test]
fn maximum_requests_do_not_overflow_sums() {
    let mut cache = cache();
    let most = Resources { cpu: 0, memory: u64::MAX.into(), pods: 1 };
    assert_eq!(cache.assume(&key("p"), &"p".into(), most), Choice::NoRoom);
    for name in ["q", "r"] {
        cache.observe(&key(name), &name.into(), most + most, Some("b"));
    }
    assert_eq!(cache.assume(&key("s"), &"s".into(), request(1)), Choice::Node("a".to_owned()));
    for name in ["q", "r"] {
        cache.remove(&key(name), None);
    }
    assert_eq!(cache.sums()["b"], Resources::default());
}

#[test]
fn watch_event_replaces_assumption() {
    let mut cache = cache();
    cache.assume(&key("p"), &"p".into(), request(400));
    assert_eq!(cache.assume(&key("p"), &"p".into(), request(400)), Choice::AlreadyPlaced);
    cache.observe(&key("p"), &"p".into(), request(400), None);
    assert_eq!(cache.sums()["b"], request(400), "the watch has not confirmed the pod");
    cache.observe(&key("p"), &"p".into(), request(400), Some("a"));
    assert_eq!(cache.assumed(), 0);
    assert_eq!(cache.sums()["b"], Resources::default());
    assert_eq!(cache.sums()["a"].cpu, 700, "another scheduler has bound the pod here");
    cache.forget(&key("p"), &"p".into());
    assert_eq!(cache.sums()["a"].cpu, 700, "a confirmed pod must not be forgotten");
}

#[test]
fn unconfirmed_assumption_expires_at_deadline() {
    let mut cache = cache();
    cache.assume(&key("p"), &"p".into(), request(400));
    let now = Instant::now();
    assert!(cache.expire(now + Duration::from_secs(3600)).is_empty(), "the binding is in flight");
    cache.expect_until(&key("p"), &"p".into(), now + Duration::from_secs(30));
    assert!(cache.expire(now + Duration::from_secs(29)).is_empty());
    assert_eq!(cache.expire(now + Duration::from_secs(30)), [key("p")]);
    assert_eq!(cache.sums()["b"], Resources::default());
}

#[test]
fn deleted_pod_uses_no_room() {
    let mut cache = cache();
    cache.assume(&key("p"), &"p".into(), request(400));
    cache.remove(&key("p"), Some(&"p".into()));
    cache.remove(&key("there"), None);
    cache.expect_until(&key("p"), &"p".into(), Instant::now());
    assert!(cache.sums().values().all(|used| *used == Resources::default()));
}

#[test]
fn recreated_pod_replaces_pod_of_same_name() {
    let mut cache = cache();
    cache.assume(&key("p"), &"old".into(), request(400));
    cache.observe(&key("p"), &"new".into(), request(100), None);
    assert_eq!(cache.sums()["b"], Resources::default());
    cache.assume(&key("p"), &"new".into(), request(100));
    cache.remove(&key("p"), Some(&"old".into()));
    cache.forget(&key("p"), &"old".into());
    assert_eq!(cache.sums()["b"], request(100));
}

#[test]
fn pods_count_without_their_node_object() {
    let mut cache = Cache::default();
    cache.observe(&key("p"), &"p".into(), request(400), Some("a"));
    assert_eq!(cache.assume(&key("q"), &"q".into(), request(1)), Choice::NoRoom);
    cache.set_node("a", ROOM);
    assert_eq!(cache.sums()["a"], request(400));
    cache.remove_node("a");
    cache.set_node("a", ROOM);
    assert_eq!(cache.sums()["a"], request(400));
    cache.remove_node("a");
    cache.remove(&key("p"), None);
    assert!(cache.nodes.is_empty());
}
