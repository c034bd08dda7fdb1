//! Tests when an expiration cache returns an object, and when the object expires.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, Mutex, Weak, mpsc};
use std::time::Duration;

use informer_core::{Cached, ObjectKey, ResourceVersion, Uid};
use informer_store::ExpirationCache;

use clock::Time;

mod clock;

fn key(name: &str) -> ObjectKey {
    ObjectKey::from_text(name.into())
}

fn object<K: Send + Sync + 'static>(name: &str, value: K) -> Cached<K> {
    Cached::from_parts(key(name), ResourceVersion::from("1"), Uid::from("a"), value)
}

fn with_ttl(seconds: u64) -> (ExpirationCache<u32>, Time) {
    let time = Time::default();
    (ExpirationCache::new(Duration::from_secs(seconds)).with_clock(time.clock()), time)
}

/// A cache in which all objects are expired except those named in the returned set.
fn with_immortals() -> (ExpirationCache<u32>, Arc<Mutex<BTreeSet<String>>>) {
    let immortals = Arc::new(Mutex::new(BTreeSet::<String>::new()));
    let kept = Arc::clone(&immortals);
    let policy = move |object: &Cached<u32>, _age| {
        !kept.lock().expect("no panic while locked").contains(object.name())
    };
    (ExpirationCache::with_policy(policy), immortals)
}

fn keep(immortals: &Mutex<BTreeSet<String>>, name: &str) {
    immortals.lock().expect("no panic while locked").insert(name.to_owned());
}

// client-go: TestTTLExpirationBasic.
#[test]
fn expired_object_is_removed_on_lookup() {
    let (cache, immortals) = with_immortals();
    cache.put(object("foo", 1));
    assert!(cache.get(&key("foo")).is_none());
    keep(&immortals, "foo");
    assert!(cache.get(&key("foo")).is_none(), "the object was removed, not only hidden");
}

// client-go: TestReAddExpiredItem.
#[test]
fn expired_object_can_be_added_again() {
    let (cache, immortals) = with_immortals();
    cache.put(object("foo", 1));
    assert!(cache.get(&key("foo")).is_none());
    cache.put(object("foo", 2));
    keep(&immortals, "foo");
    assert_eq!(cache.get_by_key("foo").map(|object| *object), Some(2));
}

// client-go: TestTTLList.
#[test]
fn list_returns_valid_objects_and_removes_expired_ones() {
    let (cache, immortals) = with_immortals();
    for name in ["foo", "foo1", "foo2"] {
        cache.put(object(name, 1));
    }
    keep(&immortals, "foo1");
    let names: Vec<_> = cache.list().iter().map(|object| object.name().to_owned()).collect();
    assert_eq!(names, ["foo1"]);
    keep(&immortals, "foo");
    assert_eq!(cache.list().len(), 1);
}

// client-go: TestTTLPolicy.
#[test]
fn object_expires_when_it_is_older_than_the_ttl() {
    let (cache, time) = with_ttl(30);
    cache.put(object("foo", 1));
    assert!(cache.get_by_key("foo").is_some());
    time.advance(30);
    assert!(cache.get_by_key("foo").is_some(), "an object whose age equals the TTL is valid");
    time.advance(1);
    assert!(cache.get_by_key("foo").is_none());
}

#[test]
fn ttl_of_zero_disables_expiration() {
    let (cache, time) = with_ttl(0);
    cache.put(object("foo", 1));
    time.advance(1_000_000);
    assert!(cache.get_by_key("foo").is_some());
}

#[test]
fn putting_an_object_again_resets_its_age() {
    let (cache, time) = with_ttl(30);
    let foo = object("foo", 1);
    cache.put(foo.clone());
    time.advance(20);
    cache.put(foo);
    time.advance(20);
    assert!(cache.get_by_key("foo").is_some(), "even if the object has not changed");
    time.advance(11);
    assert!(cache.get_by_key("foo").is_none());
}

#[test]
fn reading_an_object_does_not_reset_its_age() {
    let (cache, time) = with_ttl(30);
    cache.put(object("foo", 1));
    time.advance(20);
    assert!(cache.get_by_key("foo").is_some());
    time.advance(11);
    assert!(cache.get_by_key("foo").is_none());
}

#[test]
fn keys_of_expired_objects_are_not_listed() {
    let (cache, time) = with_ttl(30);
    cache.put(object("old", 1));
    time.advance(20);
    cache.put(object("young", 1));
    time.advance(20);
    assert_eq!(cache.keys(), [key("young")]);
}

#[test]
fn policy_can_set_a_ttl_per_object() {
    let time = Time::default();
    let own_ttl = |object: &Cached<u64>, age| age >= Duration::from_secs(**object);
    let cache = ExpirationCache::with_policy(own_ttl).with_clock(time.clock());
    cache.put(object("short", 5));
    cache.put(object("long", 50));
    time.advance(5);
    assert_eq!(cache.keys(), [key("long")]);
}

#[test]
fn remove_returns_the_object_unless_it_has_expired() {
    let (cache, time) = with_ttl(30);
    cache.put(object("foo", 1));
    assert_eq!(cache.remove(&key("foo")).map(|object| *object), Some(1));
    assert!(cache.remove(&key("foo")).is_none());
    cache.put(object("foo", 2));
    time.advance(31);
    assert!(cache.remove(&key("foo")).is_none());
}

#[test]
fn replace_sets_the_whole_content_and_resets_ages() {
    let (cache, time) = with_ttl(30);
    let kept = object("kept", 1);
    cache.put(kept.clone());
    cache.put(object("dropped", 1));
    time.advance(20);
    cache.replace([kept, object("new", 1), object("new", 2)]);
    time.advance(20);
    let mut keys = cache.keys();
    keys.sort();
    assert_eq!(keys, [key("kept"), key("new")]);
    assert_eq!(cache.get_by_key("new").map(|object| *object), Some(2));
}

#[test]
fn object_added_while_the_old_one_expires_stays() {
    // The policy is evaluating the old object when the new object is added.
    let (evaluating, proceed) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
    let (policy_evaluating, policy_proceed) = (Arc::clone(&evaluating), Arc::clone(&proceed));
    let cache = Arc::new(ExpirationCache::with_policy(move |object: &Cached<u32>, _age| {
        if **object == 1 {
            policy_evaluating.wait();
            policy_proceed.wait();
        }
        **object == 1
    }));
    cache.put(object("foo", 1));
    let reader = std::thread::spawn({
        let cache = Arc::clone(&cache);
        move || cache.get_by_key("foo").is_some()
    });
    evaluating.wait();
    cache.put(object("foo", 2));
    proceed.wait();
    assert!(!reader.join().expect("no panic"), "this reader found the old object");
    assert_eq!(cache.get_by_key("foo").map(|object| *object), Some(2));
}

/// An object that reads and writes the cache when it is dropped.
struct CacheUser(Weak<ExpirationCache<CacheUser>>);

impl Drop for CacheUser {
    fn drop(&mut self) {
        if let Some(cache) = self.0.upgrade() {
            let _ = cache.get_by_key("foo");
            cache.put(object("noted", CacheUser(Weak::new())));
        }
    }
}

#[test]
fn i8_expiration_drops_and_calls_the_policy_without_lock() {
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let time = Time::default();
        let cache = Arc::new_cyclic(|cache: &Weak<ExpirationCache<CacheUser>>| {
            let policy_cache = cache.clone();
            let policy = move |_: &Cached<CacheUser>, age| {
                if let Some(cache) = policy_cache.upgrade() {
                    cache.put(object("from-policy", CacheUser(Weak::new())));
                }
                age > Duration::from_secs(30)
            };
            ExpirationCache::with_policy(policy).with_clock(time.clock())
        });
        let cache_user = || object("foo", CacheUser(Arc::downgrade(&cache)));
        // An object is dropped in each of these cases: it is put again, it is removed, it is listed
        // twice in one `replace`, `replace` removes it, and it has expired at a `get` or a `list`.
        cache.put(cache_user());
        cache.put(cache_user());
        drop(cache.remove(&key("foo")));
        cache.put(cache_user());
        cache.replace([cache_user(), cache_user()]);
        cache.replace([]);
        cache.put(cache_user());
        time.advance(31);
        assert!(cache.get_by_key("foo").is_none());
        cache.put(cache_user());
        time.advance(31);
        assert!(!cache.list().iter().any(|object| object.name() == "foo"));
        assert!(cache.get_by_key("noted").is_some() && cache.get_by_key("from-policy").is_some());
        let _ = done.send(());
    });
    finished
        .recv_timeout(Duration::from_secs(30))
        .expect("a lock was held during a drop, or the thread panicked");
}
