//! Rate limiters without a queue.

use std::sync::Arc;
use std::time::Duration;

use informer_workqueue::{
    Bucket, ItemExponential, ItemFastSlow, MaxOf, RateLimiter, WithMaxWait, default_controller_rate_limiter,
    default_item_based_rate_limiter,
};
use tokio::time::advance;

use crate::ms;

fn waits<const N: usize>(limiter: &impl RateLimiter<&'static str>, key: &'static str) -> [Duration; N] {
    [(); N].map(|()| limiter.when(&key))
}

#[test]
fn delays_double_per_key_and_reset_on_forget() {
    let limiter = ItemExponential::new(ms(1), Duration::from_secs(1));
    assert_eq!(waits(&limiter, "one"), [1, 2, 4, 8, 16].map(ms));
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, "two"), [1, 2].map(ms));
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(waits(&limiter, "one"), [ms(1)]);
    assert_eq!(limiter.num_requeues(&"two"), 2);
}

#[test]
fn exponential_waits_stay_at_their_maximum() {
    let limiter = ItemExponential::new(ms(1), Duration::from_secs(1_000));
    let waits: Vec<Duration> = (0..10_000).map(|_| limiter.when(&"one")).collect();
    assert!(waits.is_sorted());
    assert_eq!(waits[5], ms(32));
    assert_eq!(waits[19], ms(1 << 19));
    assert!(waits[20..].iter().all(|wait| *wait == Duration::from_secs(1_000)));

    let tiny = ItemExponential::new(Duration::from_nanos(1), Duration::MAX);
    let waits: Vec<Duration> = (0..200).map(|_| tiny.when(&"one")).collect();
    assert!(waits.is_sorted());
    assert_eq!((waits[40], waits[199]), (Duration::from_nanos(1 << 40), Duration::MAX));

    let none = ItemExponential::new(Duration::ZERO, Duration::MAX);
    assert!((0..200).all(|_| none.when(&"one").is_zero()));
    let short = ItemExponential::new(ms(5), ms(3));
    assert_eq!(short.when(&"one"), ms(3));
}

#[test]
fn fast_slow_limiter_waits_long_after_its_fast_attempts() {
    let limiter = ItemFastSlow::new(ms(5), Duration::from_secs(10), 3);
    let [fast, slow] = [ms(5), Duration::from_secs(10)];
    assert_eq!(waits(&limiter, "one"), [fast, fast, fast, slow, slow]);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, "two"), [fast, fast]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
    assert_eq!(waits(&limiter, "one"), [fast]);
}

#[tokio::test(start_paused = true)]
async fn bucket_allows_a_burst_and_then_one_per_interval() {
    let bucket = Bucket::new(ms(100), 3);
    assert_eq!(waits(&bucket, "any"), [0, 0, 0, 100, 200].map(ms));
    assert_eq!(bucket.when(&"another"), ms(300));
    advance(ms(350)).await;
    assert_eq!(bucket.when(&"any"), ms(50));
    advance(Duration::from_secs(3_600)).await;
    assert_eq!(waits(&bucket, "any"), [0, 0, 0, 100].map(ms), "the bucket refills up to its burst");
    RateLimiter::<&str>::forget(&bucket, &"any");
    assert_eq!(bucket.num_requeues(&"any"), 0);
    assert_eq!(waits(&Bucket::new(ms(100), 0), "any"), [100, 200].map(ms));
    assert_eq!(
        waits(&Bucket::new(Duration::MAX, 1), "any"),
        [Duration::ZERO; 2],
        "a wait beyond the clock's range is zero"
    );
}

#[test]
fn combined_limiters_use_the_longest_wait() {
    let limiter = MaxOf::new(ItemFastSlow::new(ms(5), Duration::from_secs(3), 3))
        .and(ItemExponential::new(ms(1), Duration::from_secs(1)));
    let expected = [ms(5), ms(5), ms(5), Duration::from_secs(3), Duration::from_secs(3)];
    assert_eq!(waits(&limiter, "one"), expected);
    assert_eq!(limiter.num_requeues(&"one"), 5);
    assert_eq!(waits(&limiter, "two"), [ms(5)]);
    limiter.forget(&"one");
    assert_eq!(limiter.num_requeues(&"one"), 0);
}

#[test]
fn maximum_caps_waits_and_counts_all_failures() {
    let limiter = WithMaxWait::new(ItemExponential::new(ms(1), Duration::from_secs(1)), ms(5));
    assert_eq!(waits(&limiter, "one"), [1, 2, 4, 5, 5].map(ms));
    assert_eq!(limiter.num_requeues(&"one"), 5);
    limiter.forget(&"one");
    assert_eq!(waits(&limiter, "one"), [ms(1)]);
}

#[tokio::test(start_paused = true)]
async fn default_controller_limiter_equals_client_gos() {
    let limiter = default_controller_rate_limiter();
    assert_eq!(waits(&limiter, "one"), [5, 10, 20].map(ms));
    let in_the_burst = [(); 97].map(|()| limiter.when(&"one"));
    assert_eq!(in_the_burst[96], Duration::from_secs(1_000));
    assert_eq!(limiter.when(&"two"), ms(100), "the burst is used up");
    assert_eq!(limiter.when(&"three"), ms(200));
    assert_eq!(waits(&default_item_based_rate_limiter(), "one"), [1, 2].map(ms));
}

#[test]
fn queues_can_share_a_limiter() {
    let shared = Arc::new(ItemExponential::new(ms(1), Duration::from_secs(1)));
    let other = Arc::clone(&shared);
    assert_eq!((shared.when(&"one"), other.when(&"one")), (ms(1), ms(2)));
    other.forget(&"one");
    assert_eq!(shared.num_requeues(&"one"), 0);
}

#[tokio::test(start_paused = true)]
async fn old_failures_are_removed_without_forget() {
    let limiter = ItemExponential::new(ms(1), Duration::from_secs(1_000));
    (0..1_023_u32).for_each(|key| _ = limiter.when(&key));
    advance(Duration::from_secs(1_900)).await;
    limiter.when(&0);
    advance(Duration::from_secs(101)).await;
    // The table has reached its threshold, so these calls remove old keys.
    limiter.when(&5_000);
    limiter.when(&5_001);
    assert_eq!(limiter.num_requeues(&0), 2, "the key has failed recently");
    assert_eq!(limiter.num_requeues(&1), 0);
    assert!(format!("{limiter:?}").contains("keys: 3"), "{limiter:?}");
}
