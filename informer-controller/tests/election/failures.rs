//! A leader whose server is unreachable or slow, or whose lease another candidate takes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use informer_controller::{ElectionProblem, LeadershipEnd};
use informer_testing::{CannedResponse, Fault, Gate, RequestFilter, Verb};
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{WorkEvent, elector, holder, lease, next, simulator, within, work_until_dropped};
use crate::network::{Behavior, Link};

#[tokio::test(start_paused = true)]
async fn unreachable_server_stops_leader_before_lease_ends() {
    for way in [Behavior::Refused, Behavior::Silent] {
        let simulator = simulator();
        let link = Link::to(&simulator);
        let elector = elector(&link, "ann");
        let status = elector.status();
        let (running, mut events) = work_until_dropped(elector);
        assert_eq!(next(&mut events).await, WorkEvent::Began);
        let renewed = Instant::now();
        link.set(way);
        assert_eq!(next(&mut events).await, WorkEvent::Cancelled);
        assert!(matches!(status.problem(), Some(ElectionProblem::Failing(_))), "{way:?}");
        assert_eq!(renewed.elapsed(), Duration::from_secs(10), "{way:?}");
        assert_eq!(next(&mut events).await, WorkEvent::Over);
        assert_eq!(renewed.elapsed(), Duration::from_millis(12_500), "{way:?}");
        assert_eq!(within(running).await.expect("no panic"), LeadershipEnd::Lost(None));
        assert_eq!(holder(&simulator), "ann", "the lease must not be released");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_leadership_returns_output_of_cancelled_work() {
    let simulator = simulator();
    let link = Link::to(&simulator);
    let mut elector = elector(&link, "ann");
    let run = elector.run(CancellationToken::new(), |stop| async move {
        link.set(Behavior::Refused);
        stop.cancelled().await;
        "cleaned up"
    });
    assert_eq!(within(run).await, LeadershipEnd::Lost(Some("cleaned up")));
}

#[tokio::test(start_paused = true)]
async fn leader_stops_when_it_reads_a_foreign_lease() {
    let simulator = simulator();
    let (running, mut events) = work_until_dropped(elector(&Link::to(&simulator), "ann"));
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    let mut stolen = simulator.get::<Lease>("shop/till").expect("the object exists");
    stolen.spec.get_or_insert_default().holder_identity = Some("eve".to_owned());
    simulator.update(&stolen).expect("the version is current");
    let began = Instant::now();
    assert_eq!(next(&mut events).await, WorkEvent::Over);
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(within(running).await.expect("no panic"), LeadershipEnd::Lost(None));
    assert_eq!(holder(&simulator), "eve");
}

#[tokio::test(start_paused = true)]
async fn outage_below_renew_deadline_leaves_work_running() {
    let simulator = simulator();
    let link = Link::to(&simulator);
    let (running, mut events) = work_until_dropped(elector(&link, "ann"));
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    for way in [Behavior::Refused, Behavior::Silent, Behavior::AnswersLost] {
        link.set(way);
        tokio::time::sleep(Duration::from_secs(4)).await;
        link.set(Behavior::Open);
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert!(events.try_recv().is_err(), "the work must continue");
    assert_eq!(lease(&simulator).lease_transitions, Some(0));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn write_with_lost_answer_is_recognised_as_own_claim() {
    let simulator = simulator();
    let link = Link::to(&simulator);
    link.set(Behavior::AnswersLost);
    let (running, mut events) = work_until_dropped(elector(&link, "ann"));
    simulator.wait_for_requests(&RequestFilter::verb(Verb::Create), 1).await;
    let made = Instant::now();
    link.set(Behavior::Open);
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    assert!(made.elapsed() < Duration::from_secs(10), "the candidate must not wait for its own lease");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn release_without_answer_ends_within_one_request_timeout() {
    let simulator = simulator();
    let link = Link::to(&simulator);
    let mut elector = elector(&link, "ann");
    let began = Instant::now();
    let end =
        within(elector.run(CancellationToken::new(), |_| async { link.set(Behavior::AnswersLost) })).await;
    assert_eq!(end, LeadershipEnd::Finished(()));
    assert!(began.elapsed() <= Duration::from_secs(5));
    assert_eq!(holder(&simulator), "");
}

#[tokio::test(start_paused = true)]
async fn silent_read_after_a_conflict_of_the_release_is_reported() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let status = elector.status();
    let (slow, silent) = (Gate::new(), Gate::new());
    let run = elector.run(CancellationToken::new(), |_| async {
        // The release conflicts with this write.
        let mut changed = simulator.get::<Lease>("shop/till").expect("the object exists");
        changed.metadata.labels.get_or_insert_default().insert("app".to_owned(), "till".to_owned());
        simulator.update(&changed).expect("the version is current");
        simulator.fail_next(1, RequestFilter::verb(Verb::Update), Fault::stall(&slow));
        simulator.fail_next(1, RequestFilter::verb(Verb::Get), Fault::stall(&silent));
    });
    let conflict = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        slow.release();
    };
    let (end, ()) = tokio::join!(within(run), conflict);
    assert_eq!(end, LeadershipEnd::Finished(()));
    assert!(matches!(status.problem(), Some(ElectionProblem::Failing(_))), "{status:?}");
    assert_eq!(holder(&simulator), "ann");
}

#[tokio::test(start_paused = true)]
async fn leaders_work_is_not_polled_after_its_deadline() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let run = elector.run(CancellationToken::new(), |_| async {
        // Simulates a machine that was suspended.
        tokio::time::advance(Duration::from_secs(13)).await;
        unreachable!("the work must not be polled after its deadline");
    });
    assert_eq!(within(run).await, LeadershipEnd::<()>::Lost(None));
}

#[tokio::test(start_paused = true)]
async fn stop_token_is_cancelled_if_timers_fire_late() {
    let simulator = simulator();
    let mut elector = elector(&Link::to(&simulator), "ann");
    let (sender, mut tokens) = tokio::sync::mpsc::unbounded_channel();
    // A spawned task that wakes itself is polled again before the runtime fires timers.
    let running = tokio::spawn(async move {
        let run = elector.run(CancellationToken::new(), |stop| async move {
            _ = sender.send(stop);
            _ = tokio::time::advance(Duration::from_secs(13)).now_or_never();
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            })
            .await;
        });
        run.await
    });
    assert_eq!(within(running).await.expect("no panic"), LeadershipEnd::Lost(None));
    assert!(tokens.recv().await.expect("the work has begun").is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn forbidden_lease_is_reported_and_retried() {
    let simulator = simulator();
    let link = Link::to(&simulator);
    let message = "leases.coordination.k8s.io \"till\" is forbidden";
    let refusal = CannedResponse::failure(http::StatusCode::FORBIDDEN, "Forbidden", message);
    let refused = simulator.fail_while(RequestFilter::any(), refusal);
    let elector = elector(&link, "ann");
    let mut status = elector.status();
    let (running, mut events) = work_until_dropped(elector);
    assert!(within(status.changed()).await);
    let problem = status.problem().expect("the status has a problem");
    assert_eq!(problem, ElectionProblem::Forbidden(message.to_owned()));
    assert!(problem.to_string().contains("grant get, create and update of leases"), "{problem}");
    assert!(!status.is_leading());
    tokio::time::sleep(Duration::from_secs(60)).await;
    refused.end();
    assert_eq!(next(&mut events).await, WorkEvent::Began);
    assert_eq!(status.problem(), None);
    running.abort();
}
