//! The content of lists.

use serde_json::json;

use crate::objects::{labelled, names, secret, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(an_empty_list_has_an_empty_array_of_items),
        scenario(a_missing_namespace_has_empty_lists),
        scenario(list_has_a_kind_and_its_items_do_not),
        scenario(list_is_sorted_by_name),
        scenario(a_list_over_all_namespaces_is_in_bytewise_order_of_keys),
        scenario(list_of_a_namespace_has_no_objects_of_another),
        scenario(a_list_sees_every_write_before_it),
        scenario(a_lists_version_is_at_least_that_of_its_items),
        scenario(list_of_one_object_by_name_is_a_list),
        scenario(single_object_has_a_kind),
        scenario(a_missing_object_is_not_found),
    ]
}

async fn an_empty_list_has_an_empty_array_of_items(server: Server) {
    let answer = server.list(&[]).await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-cache, private");
    let list = answer.expect(200);
    assert_eq!((&list["kind"], &list["items"]), (&json!("SecretList"), &json!([])));
    assert!(version(&list) > 0);
}

async fn a_missing_namespace_has_empty_lists(server: Server) {
    let list = server.get("/api/v1/namespaces/wire-nowhere/secrets").await.expect(200);
    assert_eq!(list["items"], json!([]));
}

async fn list_has_a_kind_and_its_items_do_not(server: Server) {
    server.create_secrets(&["a"]).await;
    let list = server.list(&[]).await.expect(200);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("SecretList"), &json!("v1")));
    assert!(list["items"][0].get("kind").is_none() && list["items"][0].get("apiVersion").is_none(), "{list}");
}

async fn list_is_sorted_by_name(server: Server) {
    server.create_secrets(&["b", "a.c", "a-b", "a", "b1", "10", "9"]).await;
    let list = server.list(&[]).await.expect(200);
    assert_eq!(names(&list), ["10", "9", "a", "a-b", "a.c", "b", "b1"]);
}

async fn a_list_over_all_namespaces_is_in_bytewise_order_of_keys(server: Server) {
    // One name is a prefix of the other: `a-b/` sorts before `a/`.
    let long = format!("{}-x", server.namespace);
    server.create("/api/v1/namespaces", &json!({ "metadata": { "name": long } })).await;
    let label = ("order", server.namespace.as_str());
    server.create(&server.secrets(), &labelled("a", label.0, label.1)).await;
    server.create(&format!("/api/v1/namespaces/{long}/secrets"), &labelled("z", label.0, label.1)).await;
    let selector = format!("order={}", server.namespace);
    let list = server.get(&with_query("/api/v1/secrets", &[("labelSelector", &selector)])).await.expect(200);
    assert_eq!(names(&list), ["z", "a"]);
}

async fn list_of_a_namespace_has_no_objects_of_another(server: Server) {
    let other = server.new_namespace().await;
    server.create(&format!("/api/v1/namespaces/{other}/secrets"), &secret("elsewhere")).await;
    server.create_secrets(&["here"]).await;
    assert_eq!(names(&server.list(&[]).await.expect(200)), ["here"]);
}

async fn a_list_sees_every_write_before_it(server: Server) {
    for round in 0..10 {
        server.create_secrets(&[&format!("s{round}")]).await;
        assert_eq!(names(&server.list(&[]).await.expect(200)).len(), round + 1);
    }
}

async fn a_lists_version_is_at_least_that_of_its_items(server: Server) {
    let last = server.create_secrets(&["a", "b"]).await;
    let list = server.list(&[]).await.expect(200);
    assert!(version(&list) >= version(&last));
    assert_eq!(version(&list["items"][1]), version(&last));
}

async fn list_of_one_object_by_name_is_a_list(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let list = server.list(&[("fieldSelector", "metadata.name=b")]).await.expect(200);
    assert_eq!((names(&list), &list["kind"]), (vec!["b"], &json!("SecretList")));
}

async fn single_object_has_a_kind(server: Server) {
    server.create_secrets(&["a"]).await;
    let object = server.get(&server.secret_path("a")).await.expect(200);
    assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("Secret"), &json!("v1")));
}

async fn a_missing_object_is_not_found(server: Server) {
    let refusal = server.get(&server.secret_path("a")).await;
    refusal.refused(404, "NotFound", "secrets \"a\" not found").is_about("", "secrets", "a");
    let path = server.group("apps/v1", "deployments/a");
    let refusal = server.get(&path).await.refused(404, "NotFound", "deployments.apps \"a\" not found");
    refusal.is_about("apps", "deployments", "a");
}
