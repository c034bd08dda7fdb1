//! The garbage collector's actions on dependents after a delete. On a real server, these actions are
//! asynchronous.

use http::Method;
use serde_json::{Value, json};

use crate::objects::{name, secret, uid, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, MERGE, POLL_INTERVAL, Server};
use crate::watch::Watch;

pub(crate) fn scenarios() -> Vec<Scenario> {
    let scenarios = vec![
        scenario(background_deletion_deletes_dependents),
        scenario(foreground_deletion_deletes_the_owner_last),
        scenario(foreground_deletion_waits_for_blocking_dependents),
        scenario(foreground_deletion_waits_only_for_blocking_dependents),
        scenario(orphans_stay_without_owner_reference),
        scenario(object_with_another_owner_loses_the_deleted_owner),
        scenario(foreground_deletion_keeps_objects_with_another_owner),
        scenario(foreground_owner_waits_for_the_whole_chain),
        scenario(owner_waits_for_dependents_being_deleted),
        scenario(dependent_with_orphan_finalizer_orphans_its_dependents),
        scenario(objects_that_own_each_other_are_deleted),
        scenario(an_ownership_cycle_of_three_is_deleted),
        scenario(owner_is_deleted_once_a_dependent_drops_its_reference),
        scenario(owner_is_deleted_once_a_dependent_stops_blocking_it),
        scenario(owner_is_deleted_once_one_patch_removes_its_dependent),
        scenario(dependent_with_an_owner_of_unknown_kind_is_kept),
        scenario(cluster_scoped_dependent_of_a_namespaced_owner_is_kept),
        scenario(object_with_a_missing_owner_is_deleted)
            .differs("The simulator keeps it, so that tests can create pods without their replica sets."),
    ];
    scenarios.into_iter().map(Scenario::with_controllers).collect()
}

/// Creates a secret with these owners. With `blocks`, the secret blocks their foreground deletion.
async fn owned_by(server: &Server, name: &str, owners: &[&Value], blocks: bool) -> Value {
    let mut owned = secret(name);
    owned["metadata"]["ownerReferences"] = owners.iter().map(|owner| reference(owner, blocks)).collect();
    server.create(&server.secrets(), &owned).await
}

fn reference(owner: &Value, blocks: bool) -> Value {
    let (name, uid) = (name(owner), uid(owner));
    json!({ "apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid, "blockOwnerDeletion": blocks })
}

/// Adds a finalizer to a secret if `hold` is true, or removes it.
async fn hold(server: &Server, secret: &str, hold: bool) {
    let finalizers = if hold { json!(["example.com/wait"]) } else { Value::Null };
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    server.patch(&server.secret_path(secret), MERGE, &patch).await.expect(200);
}

async fn delete(server: &Server, name: &str, policy: &str) {
    let options = json!({ "propagationPolicy": policy }).to_string();
    let path = server.secret_path(name);
    server.call(Method::DELETE, &path, &[("content-type", JSON)], options).await.expect(200);
}

/// Polls the secrets until they match.
async fn until(server: &Server, wanted: impl Fn(&[Value]) -> bool) {
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let list = server.list(&[]).await.expect(200);
        if wanted(list["items"].as_array().expect("items")) {
            return;
        }
    }
}

async fn until_left(server: &Server, left: &[&str]) {
    until(server, |secrets| secrets.iter().map(name).eq(left.iter().copied())).await;
}

fn owners(secret: &Value) -> Vec<&str> {
    let references = secret["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().map(|reference| reference["uid"].as_str().expect("a UID")).collect()
}

fn is_marked(secret: &Value) -> bool {
    secret["metadata"]["deletionTimestamp"].is_string()
}

async fn background_deletion_deletes_dependents(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    let child = owned_by(&server, "child", &[&parent], true).await;
    owned_by(&server, "grandchild", &[&child], true).await;
    server.create_secrets(&["other"]).await;
    delete(&server, "parent", "Background").await;
    server.get(&server.secret_path("parent")).await.expect(404);
    until_left(&server, &["other"]).await;
}

async fn foreground_deletion_deletes_the_owner_last(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    let child = owned_by(&server, "child", &[&parent], true).await;
    let from = version(&child).to_string();
    delete(&server, "parent", "Foreground").await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    let marked = watch.expect("MODIFIED").await;
    assert!(is_marked(&marked) && name(&marked) == "parent", "{marked}");
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(watch.briefs(2).await, ["DELETED child", "DELETED parent"]);
}

async fn foreground_deletion_waits_for_blocking_dependents(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    owned_by(&server, "child", &[&parent], true).await;
    hold(&server, "child", true).await;
    delete(&server, "parent", "Foreground").await;
    until(&server, |secrets| secrets.len() == 2 && secrets.iter().all(is_marked)).await;
    hold(&server, "child", false).await;
    until_left(&server, &[]).await;
}

async fn foreground_deletion_waits_only_for_blocking_dependents(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    owned_by(&server, "child", &[&parent], false).await;
    hold(&server, "child", true).await;
    delete(&server, "parent", "Foreground").await;
    until(&server, |secrets| matches!(secrets, [child] if name(child) == "child" && is_marked(child))).await;
}

async fn orphans_stay_without_owner_reference(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    owned_by(&server, "child", &[&parent], true).await;
    delete(&server, "parent", "Orphan").await;
    until_left(&server, &["child"]).await;
    let child = server.get(&server.secret_path("child")).await.expect(200);
    assert!(child["metadata"].get("ownerReferences").is_none(), "{child}");
}

async fn object_with_another_owner_loses_the_deleted_owner(server: Server) {
    let (one, two) = (server.create_secrets(&["one"]).await, server.create_secrets(&["two"]).await);
    owned_by(&server, "child", &[&one, &two], true).await;
    delete(&server, "one", "Background").await;
    until(&server, |secrets| owners(&secrets[0]) == [uid(&two)]).await;
    // The default policy is `Background`, too.
    server.delete(&server.secret_path("two")).await.expect(200);
    until_left(&server, &[]).await;
}

async fn foreground_deletion_keeps_objects_with_another_owner(server: Server) {
    let (one, two) = (server.create_secrets(&["one"]).await, server.create_secrets(&["two"]).await);
    owned_by(&server, "child", &[&one, &two], true).await;
    delete(&server, "one", "Foreground").await;
    until_left(&server, &["child", "two"]).await;
    let child = server.get(&server.secret_path("child")).await.expect(200);
    assert!(owners(&child) == [uid(&two)] && !is_marked(&child), "{child}");
}

/// Reads a watch until the object `last` is deleted. Returns the names of all deleted objects in
/// order.
async fn ends_up_to(watch: &mut Watch, last: &str) -> Vec<String> {
    let mut ends = Vec::new();
    while ends.last().is_none_or(|end| end != last) {
        let event = watch.event().await.expect("the stream continues");
        if event["type"] == "DELETED" {
            ends.push(name(&event["object"]).to_owned());
        }
    }
    ends
}

async fn foreground_owner_waits_for_the_whole_chain(server: Server) {
    let a = server.create_secrets(&["a"]).await;
    let from = version(&a).to_string();
    let b = owned_by(&server, "b", &[&a], true).await;
    let c = owned_by(&server, "c", &[&b], true).await;
    owned_by(&server, "d", &[&c], true).await;
    hold(&server, "d", true).await;
    delete(&server, "a", "Foreground").await;
    until(&server, |secrets| secrets.len() == 4 && secrets.iter().all(is_marked)).await;
    for secret in ["a", "b", "c"] {
        server.label(secret, "seen", "yes").await;
    }
    delete(&server, "a", "Foreground").await;
    hold(&server, "d", false).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    assert_eq!(ends_up_to(&mut watch, "a").await, ["d", "c", "b", "a"]);
}

async fn owner_waits_for_dependents_being_deleted(server: Server) {
    let one = server.create_secrets(&["one"]).await;
    let two = server.create_secrets(&["two"]).await;
    let child = owned_by(&server, "child", &[&one, &two], true).await;
    let from = version(&child).to_string();
    hold(&server, "child", true).await;
    delete(&server, "child", "Background").await;
    delete(&server, "one", "Foreground").await;
    server.label("one", "seen", "yes").await;
    let child = server.get(&server.secret_path("child")).await.expect(200);
    assert_eq!(owners(&child), [uid(&one), uid(&two)]);
    hold(&server, "child", false).await;
    let mut watch = server.watch(&[("resourceVersion", &from)]).await;
    assert_eq!(ends_up_to(&mut watch, "one").await, ["child", "one"]);
}

async fn dependent_with_orphan_finalizer_orphans_its_dependents(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    let child = owned_by(&server, "child", &[&parent], true).await;
    owned_by(&server, "grandchild", &[&child], true).await;
    let patch = json!({ "metadata": { "finalizers": ["orphan"] } });
    server.patch(&server.secret_path("child"), MERGE, &patch).await.expect(200);
    delete(&server, "parent", "Background").await;
    until_left(&server, &["grandchild"]).await;
    let grandchild = server.get(&server.secret_path("grandchild")).await.expect(200);
    assert!(owners(&grandchild).is_empty() && !is_marked(&grandchild), "{grandchild}");
}

/// Creates secrets that own each other in a cycle, deletes the first in the foreground, and waits
/// until all are removed.
async fn delete_a_cycle(server: &Server, names: &[&str]) {
    let first = server.create_secrets(&names[..1]).await;
    let mut last = first.clone();
    for next in &names[1..] {
        last = owned_by(server, next, &[&last], true).await;
    }
    let patch = json!({ "metadata": { "ownerReferences": [reference(&last, true)] } });
    server.patch(&server.secret_path(name(&first)), MERGE, &patch).await.expect(200);
    delete(server, name(&first), "Foreground").await;
    until_left(server, &[]).await;
}

async fn objects_that_own_each_other_are_deleted(server: Server) {
    delete_a_cycle(&server, &["one", "two"]).await;
}

async fn an_ownership_cycle_of_three_is_deleted(server: Server) {
    delete_a_cycle(&server, &["one", "two", "three"]).await;
}

/// Deletes an owner in the foreground while a dependent blocks it. Then replaces the owner references
/// of the dependent, and waits until only the dependent is left.
async fn unblock_owner(server: &Server, references: impl Fn(&Value) -> Value) {
    let parent = server.create_secrets(&["parent"]).await;
    owned_by(server, "child", &[&parent], true).await;
    hold(server, "child", true).await;
    delete(server, "parent", "Foreground").await;
    until(server, |secrets| secrets.len() == 2 && secrets.iter().all(is_marked)).await;
    let patch = json!({ "metadata": { "ownerReferences": references(&parent) } });
    server.patch(&server.secret_path("child"), MERGE, &patch).await.expect(200);
    until_left(server, &["child"]).await;
    hold(server, "child", false).await;
    until_left(server, &[]).await;
}

async fn owner_is_deleted_once_a_dependent_drops_its_reference(server: Server) {
    unblock_owner(&server, |_| Value::Null).await;
}

async fn owner_is_deleted_once_a_dependent_stops_blocking_it(server: Server) {
    unblock_owner(&server, |parent| json!([reference(parent, false)])).await;
}

async fn owner_is_deleted_once_one_patch_removes_its_dependent(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    owned_by(&server, "child", &[&parent], true).await;
    hold(&server, "child", true).await;
    delete(&server, "parent", "Foreground").await;
    until(&server, |secrets| secrets.len() == 2 && secrets.iter().all(is_marked)).await;
    let patch = json!({ "metadata": { "finalizers": null, "ownerReferences": null } });
    server.patch(&server.secret_path("child"), MERGE, &patch).await.expect(200);
    until_left(&server, &[]).await;
}

async fn dependent_with_an_owner_of_unknown_kind_is_kept(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    let mut kept = secret("kept");
    kept["metadata"]["ownerReferences"] = json!([
        reference(&parent, true),
        { "apiVersion": "unknown.test/v1", "kind": "Unknown", "name": "never", "uid": "never" },
    ]);
    let kept = server.create(&server.secrets(), &kept).await;
    owned_by(&server, "child", &[&parent], true).await;
    delete(&server, "parent", "Background").await;
    until_left(&server, &["kept"]).await;
    assert_eq!(server.get(&server.secret_path("kept")).await.expect(200), kept);
}

async fn cluster_scoped_dependent_of_a_namespaced_owner_is_kept(server: Server) {
    let parent = server.create_secrets(&["parent"]).await;
    let metadata = json!({ "name": server.namespace, "ownerReferences": [reference(&parent, true)] });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    server.create(path, &json!({ "metadata": metadata })).await;
    owned_by(&server, "child", &[&parent], true).await;
    delete(&server, "parent", "Background").await;
    until_left(&server, &[]).await;
    let path = format!("{path}/{}", server.namespace);
    server.get(&path).await.expect(200);
    server.delete(&path).await.expect(200);
}

async fn object_with_a_missing_owner_is_deleted(server: Server) {
    let never = json!({ "metadata": { "name": "never", "uid": "00000000-0000-4000-8000-000000000000" } });
    owned_by(&server, "orphan", &[&never], true).await;
    let left: &[&str] = if server.is_real() { &[] } else { &["orphan"] };
    until_left(&server, left).await;
}
