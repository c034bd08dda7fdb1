//! Leases, as leader election uses them.

use serde_json::{Value, json};

use crate::objects::{uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(lease_can_be_taken_over_at_its_current_version),
        scenario(update_of_a_lease_that_another_has_taken_is_a_conflict),
        scenario(update_of_a_lease_needs_a_version),
        scenario(only_one_of_two_creates_of_a_lease_succeeds),
        scenario(lease_times_keep_microseconds),
        scenario(update_with_a_uid_does_not_create_a_lease),
    ]
}

fn lease(holder: &str) -> Value {
    let spec = json!({
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000001Z",
        "renewTime": "2026-01-01T00:00:00.000001Z",
    });
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" }, "spec": spec })
}

fn leases(server: &Server) -> String {
    server.group("coordination.k8s.io/v1", "leases")
}

async fn lease_can_be_taken_over_at_its_current_version(server: Server) {
    let path = leases(&server);
    let mut seen = server.create(&path, &lease("one")).await;
    seen["spec"]["holderIdentity"] = "two".into();
    let taken = server.put(&format!("{path}/a"), &seen).await.expect(200);
    assert_eq!(taken["spec"]["holderIdentity"], "two");
    assert!(version(&taken) > version(&seen));
    assert!(taken["metadata"].get("generation").is_none(), "{taken}");
}

async fn update_of_a_lease_that_another_has_taken_is_a_conflict(server: Server) {
    let path = leases(&server);
    let mut seen = server.create(&path, &lease("one")).await;
    seen["spec"]["holderIdentity"] = "two".into();
    server.put(&format!("{path}/a"), &seen).await.expect(200);
    seen["spec"]["holderIdentity"] = "three".into();
    let message =
        "Operation cannot be fulfilled on leases.coordination.k8s.io \"a\": the object has been modified";
    let refusal = server.put(&format!("{path}/a"), &seen).await.refused_with(409, "Conflict", message);
    refusal.is_about("coordination.k8s.io", "leases", "a");
}

async fn update_of_a_lease_needs_a_version(server: Server) {
    let path = leases(&server);
    server.create(&path, &lease("one")).await;
    let message = "leases.coordination.k8s.io \"a\" is invalid: \
        metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let refusal = server.put(&format!("{path}/a"), &lease("two")).await.refused(422, "Invalid", message);
    refusal.is_about("coordination.k8s.io", "leases", "a");
    refusal.has_causes(&[("FieldValueInvalid", "metadata.resourceVersion")]);
}

async fn only_one_of_two_creates_of_a_lease_succeeds(server: Server) {
    let (path, one, two) = (leases(&server), lease("one"), lease("two"));
    let (one, two) = tokio::join!(server.post(&path, &one), server.post(&path, &two));
    let mut codes = [one.code, two.code];
    codes.sort_unstable();
    assert_eq!(codes, [201, 409]);
}

async fn lease_times_keep_microseconds(server: Server) {
    let created = server.create(&leases(&server), &lease("one")).await;
    assert_eq!(created["spec"], lease("one")["spec"]);
}

async fn update_with_a_uid_does_not_create_a_lease(server: Server) {
    let path = leases(&server);
    let created = server.create(&path, &lease("one")).await;
    server.delete(&format!("{path}/a")).await.expect(200);
    let message =
        format!("Precondition failed: UID in precondition: {}, UID in object meta: ", uid(&created));
    server.put(&format!("{path}/a"), &created).await.refused_with(409, "Conflict", &message);
}
