//! Tests of the time at which a candidate takes over the lease of another candidate.

use std::time::Duration;

use informer_controller::LeadershipEnd;
use informer_testing::Simulator;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{LONGEST_RETRY, elector, lease, simulator, within};
use crate::network::Link;

/// Writes the lease as another program does, with the given renewal date.
fn write(simulator: &Simulator, holder: &str, seconds: i32, date: &str) {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "namespace": "shop", "name": "till", "labels": { "app": "till" } },
        "spec": {
            "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 6,
            "acquireTime": date, "renewTime": date,
        },
    });
    simulator.apply(&lease).expect("a valid lease");
}

/// Runs a candidate until it leads. Returns the time until then.
async fn time_to_lead(simulator: &Simulator) -> Duration {
    let (mut elector, began) = (elector(&Link::to(simulator), "bob"), Instant::now());
    let end = within(elector.run(CancellationToken::new(), |_| async { Instant::now() })).await;
    let LeadershipEnd::Finished(led) = end else { panic!("{end:?}") };
    led - began
}

#[tokio::test(start_paused = true)]
async fn renewed_lease_with_wrong_clock_is_not_taken() {
    for year in ["1990", "2190"] {
        let simulator = simulator();
        let date = |second: u64| format!("{year}-01-01T00:{:02}:{:02}.000000Z", second / 60, second % 60);
        write(&simulator, "ann", 15, &date(0));
        let renewals = async {
            for second in (0..300).step_by(2) {
                write(&simulator, "ann", 15, &date(second));
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        };
        let mut elector = elector(&Link::to(&simulator), "bob");
        let contending = elector.run(CancellationToken::new(), |_| async {});
        tokio::select! {
            end = contending => panic!("{year}: {end:?}"),
            () = renewals => {}
        }
        assert_eq!(lease(&simulator).holder_identity.as_deref(), Some("ann"));
    }
}

#[tokio::test(start_paused = true)]
async fn unrenewed_lease_is_taken_after_its_duration() {
    for year in ["1990", "2190"] {
        let simulator = simulator();
        write(&simulator, "ann", 15, &format!("{year}-01-01T00:00:00.000000Z"));
        let took = time_to_lead(&simulator).await;
        let latest = Duration::from_secs(15) + LONGEST_RETRY;
        assert!((Duration::from_secs(15)..latest).contains(&took), "{year}: {took:?}");
        assert_eq!(lease(&simulator).lease_transitions, Some(7));
    }
}

#[tokio::test(start_paused = true)]
async fn takeover_waits_for_the_duration_in_the_lease() {
    let simulator = simulator();
    write(&simulator, "ann", 60, "2026-01-01T00:00:00.000000Z");
    let took = time_to_lead(&simulator).await;
    assert!(took >= Duration::from_secs(60), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_taken_at_once_and_keeps_its_metadata() {
    let simulator = simulator();
    write(&simulator, "", 1, "2026-01-01T00:00:00.000000Z");
    assert_eq!(time_to_lead(&simulator).await, Duration::ZERO);
    let stored =
        simulator.get::<k8s_openapi::api::coordination::v1::Lease>("shop/till").expect("the object exists");
    assert_eq!(stored.metadata.labels.expect("labels")["app"], "till");
}

#[tokio::test(start_paused = true)]
async fn lease_of_earlier_process_with_same_name_is_foreign() {
    let simulator = simulator();
    write(&simulator, "bob", 15, "2026-01-01T00:00:00.000000Z");
    let took = time_to_lead(&simulator).await;
    assert!(took >= Duration::from_secs(15), "{took:?}");
}
