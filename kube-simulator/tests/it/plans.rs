//! Fault plans, which are generated from a seed.

use std::collections::HashSet;
use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_simulator::{FaultPlan, FaultPlanOptions, RequestFilter, ServerFault, Simulator, Verb};
use serde_json::Value;
use tokio::time::Instant;

use crate::support::{MAPS, config_map, get, request, send};

#[test]
fn same_seed_makes_the_same_plan() {
    let options = FaultPlanOptions::default();
    let plan = |seed| FaultPlan::from_seed(seed, &options).to_string();
    assert_eq!(plan(1), plan(1));
    assert_ne!(plan(1), plan(2));
    assert_eq!(plan(1).lines().count(), options.count, "a plan must have one line per fault");
}

#[test]
fn plans_contain_all_fault_kinds_and_end_in_time() {
    let options = FaultPlanOptions::default();
    let mut seen = HashSet::new();
    for seed in 0..50 {
        for planned in FaultPlan::from_seed(seed, &options).faults() {
            assert!(planned.at + planned.duration <= options.duration, "{planned}");
            assert_eq!(
                planned.fault.has_duration(),
                planned.duration > Duration::ZERO || planned.at == options.duration
            );
            seen.insert(std::mem::discriminant(&planned.fault));
        }
    }
    let all: HashSet<_> = options.faults.iter().map(std::mem::discriminant).collect();
    assert_eq!(seen, all);
}

#[test]
fn planned_number_of_bytes_does_not_overflow() {
    let faults = vec![
        ServerFault::StallBodies(u64::MAX),
        ServerFault::CloseBodies(u64::MAX),
        ServerFault::AbortBodies(u64::MAX),
    ];
    let options = FaultPlanOptions { faults: faults.clone(), ..FaultPlanOptions::default() };
    let plan = FaultPlan::from_seed(1, &options);
    assert!(plan.faults().iter().all(|planned| faults.contains(&planned.fault)), "{plan}");
}

#[tokio::test(start_paused = true)]
async fn plan_without_an_end_is_limited_to_a_year() {
    let options = FaultPlanOptions { duration: Duration::MAX, count: 0, ..FaultPlanOptions::default() };
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let began = Instant::now();
    FaultPlan::from_seed(1, &options).run(&simulator, |_| {}).await;
    assert_eq!(began.elapsed(), Duration::from_secs(365 * 24 * 60 * 60));
}

#[tokio::test(start_paused = true)]
async fn every_planned_fault_starts_and_ends_as_planned() {
    let options = FaultPlanOptions {
        faults: [FaultPlanOptions::default().faults, vec![ServerFault::UndoWrites]].concat(),
        count: 200,
        requests: RequestFilter::verb(Verb::List),
        ..FaultPlanOptions::default()
    };
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.create(&config_map("a", "one")).unwrap();
    let replica = simulator.lagging_replica();
    let plan = FaultPlan::from_seed(3, &options);
    let mut reports = Vec::new();
    let began = Instant::now();
    plan.run(&simulator, |what| reports.push(what.to_owned())).await;
    assert_eq!(began.elapsed(), options.duration);
    let lasting = plan.faults().iter().filter(|planned| planned.fault.has_duration()).count();
    assert_eq!(
        reports.len(),
        plan.faults().len() + lasting,
        "every start and every end of a lasting fault must be reported"
    );
    let (code, list) = get(&simulator, MAPS).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (StatusCode::OK, Some(1)));
    simulator.create(&config_map("a", "two")).unwrap();
    assert_eq!(replica.resource_version(), simulator.resource_version());
}

#[tokio::test(start_paused = true)]
async fn planned_refusals_have_code_and_retry_after() {
    for code in [410, 429, 500, 503, 504] {
        for retry_after in [0, 3] {
            let faults = vec![ServerFault::Respond { code, retry_after }];
            let options = FaultPlanOptions { faults, count: 1, ..FaultPlanOptions::default() };
            let simulator = Simulator::builder().built_in_kinds().start_in_process();
            let plan = FaultPlan::from_seed(2, &options);
            let planned = plan.faults()[0];
            let ask = || send(&simulator, request(Method::GET, MAPS, &Value::Null));
            let requests = async {
                tokio::time::sleep(planned.at + planned.duration / 2).await;
                let answer = ask().await;
                let received =
                    answer.headers().get("retry-after").map(|seconds| seconds.to_str().unwrap().to_owned());
                // A response with code 410 has no `Retry-After`.
                let expected = (retry_after > 0 && code != 410).then(|| retry_after.to_string());
                assert_eq!((answer.status().as_u16(), received), (code, expected));
            };
            tokio::join!(plan.run(&simulator, |_| {}), requests);
            assert_eq!(ask().await.status(), StatusCode::OK);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_plan_ends_its_faults() {
    let only_refusals = FaultPlanOptions {
        faults: vec![ServerFault::Respond { code: 500, retry_after: 0 }, ServerFault::ExpireTokens],
        ..FaultPlanOptions::default()
    };
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let plan = FaultPlan::from_seed(1, &only_refusals);
    let (report_sender, mut reports) = tokio::sync::mpsc::unbounded_channel();
    {
        let run = plan.run(&simulator, |what| _ = report_sender.send(what.to_owned()));
        tokio::select! {
            () = run => unreachable!("the plan takes ten minutes"),
            _ = reports.recv() => {}
        }
    }
    assert_eq!(get(&simulator, MAPS).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn restore_fault_undoes_writes_when_it_ends() {
    let undo =
        FaultPlanOptions { faults: vec![ServerFault::UndoWrites], count: 1, ..FaultPlanOptions::default() };
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    let plan = FaultPlan::from_seed(5, &undo);
    let maps = simulator.objects_of::<ConfigMap>().unwrap();
    let mut counts = Vec::new();
    plan.run(&simulator, |_| {
        counts.push(maps.len());
        maps.create(&config_map("a", &format!("n{}", counts.len()))).unwrap();
    })
    .await;
    assert_eq!(counts, [0, 0], "writes during the fault must be undone at its end");
    assert_eq!(maps.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn expired_tokens_fault_keeps_the_required_token() {
    let faults = vec![ServerFault::ExpireTokens];
    let options = FaultPlanOptions { faults, count: 1, ..FaultPlanOptions::default() };
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    simulator.require_token("mine");
    let code_with = async |token: &str| {
        let request = http::Request::get(MAPS).header("authorization", format!("Bearer {token}"));
        send(&simulator, request.body(Default::default()).unwrap()).await.status()
    };
    let plan = FaultPlan::from_seed(1, &options);
    let planned = plan.faults()[0];
    let during = async {
        tokio::time::sleep(planned.at + planned.duration / 2).await;
        assert_eq!(code_with("mine").await, StatusCode::UNAUTHORIZED);
    };
    tokio::join!(plan.run(&simulator, |_| {}), during);
    assert_eq!(code_with("mine").await, StatusCode::OK);
    assert_eq!(code_with("another").await, StatusCode::UNAUTHORIZED);
}
