//! A single candidate leads, renews, stops and releases.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use informer_controller::LeadershipEnd;
use informer_testing::{RequestFilter, Verb};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{LeaderWork, WorkEvent, elector, holder, lease, next, simulator, within, work_until_dropped};
use crate::network::Link;

#[tokio::test(start_paused = true)]
async fn leader_renews_with_one_request_per_retry_period() {
    let simulator = simulator();
    let elector = elector(&Link::to(&simulator), "ann");
    let status = elector.status();
    let (running, mut events) = work_until_dropped(elector);
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    assert!(status.is_leading());
    let first = lease(&simulator);
    assert_eq!(first.holder_identity.as_deref(), Some("ann"));
    assert_eq!((first.lease_duration_seconds, first.lease_transitions), (Some(15), Some(0)));
    assert_eq!(first.acquire_time, first.renew_time);
    let version = simulator.resource_version();

    tokio::time::sleep(Duration::from_millis(20_500)).await;
    let later = lease(&simulator);
    assert_eq!(simulator.resource_version(), version + 10);
    assert_eq!(
        simulator.request_count(&RequestFilter::verb(Verb::Get)),
        1,
        "renewals must use the last written lease, without a read"
    );
    assert_eq!(simulator.request_count(&RequestFilter::verb(Verb::Update)), 10);
    assert_eq!(later.acquire_time, first.acquire_time, "the term must stay the same");
    assert_ne!(later.renew_time, first.renew_time);
    assert_eq!(status.leader().as_deref(), Some("ann"));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn shutdown_renews_until_work_ends_then_releases() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let status = elector.status();
    let (shutdown, ends) = (CancellationToken::new(), CancellationToken::new());
    let (work, mut events) = LeaderWork::new();
    let running = tokio::spawn({
        let (shutdown, ends) = (shutdown.clone(), ends.clone());
        async move { elector.run(shutdown, |stop| work.run(stop, ends)).await }
    });
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    shutdown.cancel();
    assert_eq!(next(&mut events).await, WorkEvent::Cancelled);
    let renewed = lease(&simulator).renew_time;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(holder(&simulator), "ann", "the lease must be held while the work runs");
    assert_ne!(lease(&simulator).renew_time, renewed);

    ends.cancel();
    assert_eq!(within(running).await.expect("no panic"), LeadershipEnd::Finished("done"));
    assert_eq!(next(&mut events).await, WorkEvent::Over);
    assert_eq!((holder(&simulator).as_str(), lease(&simulator).lease_duration_seconds), ("", Some(1)));
    assert!(!status.is_leading());
    assert_eq!(status.leader(), None);
}

#[tokio::test(start_paused = true)]
async fn finished_work_ends_the_run_and_next_run_is_new_term() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    for term in 0..3 {
        let end = within(elector.run(CancellationToken::new(), |_| async move { term })).await;
        assert_eq!(end, LeadershipEnd::Finished(term));
        assert_eq!(lease(&simulator).lease_transitions, Some(term));
        assert_eq!(holder(&simulator), "");
    }
}

#[tokio::test(start_paused = true)]
async fn lease_labelled_by_others_is_released() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let end = within(elector.run(CancellationToken::new(), |_| async {
        let mut labelled = simulator.get::<Lease>("shop/till").expect("the object exists");
        labelled.metadata.labels = Some([("app".to_owned(), "till".to_owned())].into());
        simulator.update(&labelled).expect("the version is current");
    }))
    .await;
    assert_eq!(end, LeadershipEnd::Finished(()));
    assert_eq!(holder(&simulator), "");
    assert!(simulator.get::<Lease>("shop/till").expect("the object exists").metadata.labels.is_some());
}

#[tokio::test(start_paused = true)]
async fn candidate_shut_down_before_leading_returns_never_led() {
    let simulator = simulator();
    let mut leader = elector(&Link::to(&simulator), "ann");
    let (work, mut events) = LeaderWork::new();
    let leading = leader.run(CancellationToken::new(), |stop| work.run(stop, CancellationToken::new()));
    let mut other = elector(&Link::to(&simulator), "bob");
    let shutdown = CancellationToken::new();
    let test = async {
        assert_eq!(next(&mut events).await, WorkEvent::Began);
        shutdown.cancel();
        let end = within(other.run(shutdown.clone(), |_| async { unreachable!("ann leads") })).await;
        assert_eq!(end, LeadershipEnd::<()>::NeverLed);
    };
    tokio::select! {
        _ = leading => unreachable!("the leader keeps leading"),
        () = test => {}
    }
    assert_eq!(holder(&simulator), "ann");
}

#[tokio::test(start_paused = true)]
async fn lease_of_dropped_run_is_not_released() {
    let simulator = simulator();
    let mut first = elector(&Link::to(&simulator), "ann");
    let (work, mut events) = LeaderWork::new();
    {
        let run = first.run(CancellationToken::new(), |stop| work.run(stop, CancellationToken::new()));
        tokio::select! {
            _ = run => unreachable!("the leader keeps leading"),
            began = next(&mut events) => assert_eq!(began, WorkEvent::Began),
        }
    }
    assert_eq!(next(&mut events).await, WorkEvent::Over);
    assert_eq!(holder(&simulator), "ann");
    let died = Instant::now();
    let mut other = elector(&Link::to(&simulator), "bob");
    let end = within(other.run(CancellationToken::new(), |_| async { Instant::now() })).await;
    let LeadershipEnd::Finished(began) = end else { panic!("{end:?}") };
    assert!(began - died >= Duration::from_secs(15), "{:?}", began - died);
}

#[tokio::test(start_paused = true)]
async fn dropped_or_panicked_run_is_not_leading() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let status = elector.status();
    let (work, mut events) = LeaderWork::new();
    {
        let run = elector.run(CancellationToken::new(), |stop| work.run(stop, CancellationToken::new()));
        tokio::select! {
            _ = run => unreachable!("the leader keeps leading"),
            began = next(&mut events) => assert_eq!(began, WorkEvent::Began),
        }
    }
    assert!(!status.is_leading(), "a dropped run must not lead");
    let run =
        elector.run(CancellationToken::new(), |_| async { assert!(!status.is_leading(), "intended panic") });
    assert!(within(AssertUnwindSafe(run).catch_unwind()).await.is_err());
    assert!(!status.is_leading());
}

#[tokio::test(start_paused = true)]
async fn leader_recreates_its_deleted_lease() {
    let simulator = simulator();
    let elector = elector(&Link::to(&simulator), "ann");
    let (running, mut events) = work_until_dropped(elector);
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    let acquired = lease(&simulator).acquire_time;
    simulator.delete::<Lease>("shop/till").expect("the object exists");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(holder(&simulator), "ann");
    assert_eq!(lease(&simulator).acquire_time, acquired, "the term must stay the same");
    assert!(events.try_recv().is_err(), "the work must continue");
    running.abort();
}
