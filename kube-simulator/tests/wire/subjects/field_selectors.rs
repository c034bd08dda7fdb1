//! Field selectors: supported fields, and errors.

use serde_json::json;

use crate::objects::{names, pod, secret};
use crate::scenario::{Scenario, scenario};
use crate::server::{MERGE, Server, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(every_kind_is_selected_by_name_and_namespace),
        scenario(a_secret_is_selected_by_its_type),
        scenario(a_pod_is_selected_by_node_and_phase),
        scenario(a_default_can_be_selected)
            .differs("The simulator sets few defaults, so an omitted field of a pod is empty."),
        scenario(a_namespace_is_selected_by_its_phase),
        scenario(event_is_selected_by_its_involved_object),
        scenario(an_event_is_selected_by_its_source),
        scenario(event_of_the_newer_group_is_selected_by_its_regarding),
        scenario(job_is_selected_by_its_number_of_successes),
        scenario(unset_number_or_boolean_can_be_selected),
        scenario(label_and_field_selectors_must_both_match),
        scenario(equality_and_inequality_select_by_field),
        scenario(empty_requirements_are_skipped),
        scenario(special_characters_in_values_can_be_escaped),
        scenario(an_unknown_field_of_a_kind_with_fields_is_refused),
        scenario(an_unknown_field_of_a_kind_without_fields_is_refused),
        scenario(a_cluster_wide_kind_has_no_namespace_to_select_by),
        scenario(a_requirement_without_operator_is_refused),
        scenario(an_unknown_escape_is_refused),
        scenario(unescaped_operator_sign_is_refused),
    ]
}

async fn select(server: &Server, path: &str, selector: &str) -> String {
    let list = server.get(&with_query(path, &[("fieldSelector", selector)])).await.expect(200);
    names(&list).concat()
}

async fn refused(server: &Server, path: &str, selector: &str, message: &str) {
    let answer = server.get(&with_query(path, &[("fieldSelector", selector)])).await;
    answer.refused_with(400, "BadRequest", message);
}

async fn every_kind_is_selected_by_name_and_namespace(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    let (secrets, namespace) = (server.secrets(), &server.namespace);
    assert_eq!(select(&server, &secrets, "metadata.name=b").await, "b");
    let here = format!("metadata.namespace={namespace}");
    assert_eq!(select(&server, &secrets, &here).await, "ab");
    assert_eq!(select(&server, "/api/v1/secrets", &format!("{here},metadata.name=a")).await, "a");
    assert_eq!(select(&server, &secrets, "metadata.namespace=elsewhere").await, "");
}

async fn a_secret_is_selected_by_its_type(server: Server) {
    server.create_secrets(&["a"]).await;
    let mut typed = secret("b");
    typed["type"] = "wire.test/typed".into();
    server.create(&server.secrets(), &typed).await;
    assert_eq!(select(&server, &server.secrets(), "type=wire.test/typed").await, "b");
    assert_eq!(select(&server, &server.secrets(), "type=Opaque").await, "a");
}

async fn a_default_can_be_selected(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let expected = if server.is_real() { "a" } else { "" };
    assert_eq!(select(&server, &server.core("pods"), "spec.restartPolicy=Always").await, expected);
}

async fn a_pod_is_selected_by_node_and_phase(server: Server) {
    let pods = server.core("pods");
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = node.into();
        server.create(&pods, &pod).await;
    }
    let running = json!({ "status": { "phase": "Running" } });
    server.patch(&format!("{pods}/b/status"), MERGE, &running).await.expect(200);
    for (selector, expected) in [
        ("spec.nodeName=n1", "a"),
        ("spec.nodeName!=n1", "b"),
        ("status.phase=Running", "b"),
        ("status.phase=Pending,spec.nodeName=n1", "a"),
        ("spec.schedulerName=nobody", "ab"),
        ("spec.nodeName=", ""),
    ] {
        assert_eq!(select(&server, &pods, selector).await, expected, "{selector}");
    }
}

async fn a_namespace_is_selected_by_its_phase(server: Server) {
    let selector = format!("metadata.name={}", server.namespace);
    let active = format!("{selector},status.phase=Active");
    assert_eq!(select(&server, "/api/v1/namespaces", &active).await, server.namespace);
    assert_eq!(select(&server, "/api/v1/namespaces", &format!("{selector},status.phase=Gone")).await, "");
}

async fn event_is_selected_by_its_involved_object(server: Server) {
    let events = server.core("events");
    for (name, kind) in [("a", "Pod"), ("b", "Secret")] {
        let about = json!({ "kind": kind, "namespace": server.namespace, "name": "x", "uid": "1" });
        let event =
            json!({ "metadata": { "name": name }, "involvedObject": about, "type": "Normal", "reason": "R" });
        server.create(&events, &event).await;
    }
    assert_eq!(select(&server, &events, "involvedObject.kind=Pod,involvedObject.name=x").await, "a");
    assert_eq!(select(&server, &events, "type=Normal,reason=R,involvedObject.uid=1").await, "ab");
}

async fn an_event_is_selected_by_its_source(server: Server) {
    let events = server.core("events");
    let about = json!({ "kind": "Pod", "namespace": server.namespace, "name": "x" });
    for (name, source, reporter) in
        [("a", "kubelet", ""), ("b", "", "wire.test/b"), ("c", "c", "wire.test/c")]
    {
        let event = json!({
            "metadata": { "name": name },
            "involvedObject": about,
            "source": { "component": source },
            "reportingComponent": reporter,
        });
        server.create(&events, &event).await;
    }
    for (selector, expected) in [
        ("source=kubelet", "a"),
        ("source=wire.test/b", "b"),
        ("source=c", "c"),
        ("source=wire.test/c", ""),
        ("reportingComponent=wire.test/c", "c"),
    ] {
        assert_eq!(select(&server, &events, selector).await, expected, "{selector}");
    }
}

async fn event_of_the_newer_group_is_selected_by_its_regarding(server: Server) {
    let events = server.group("events.k8s.io/v1", "events");
    for (name, kind) in [("a", "Pod"), ("b", "Secret")] {
        let about = json!({ "kind": kind, "apiVersion": "v1", "namespace": server.namespace, "name": name, "uid": "1" });
        let event = json!({
            "metadata": { "name": name, "namespace": server.namespace },
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "wire.test/controller",
            "reportingInstance": "one",
            "action": "A",
            "reason": "R",
            "type": "Normal",
            "regarding": about,
        });
        server.create(&events, &event).await;
    }
    for (selector, expected) in [
        ("regarding.kind=Pod", "a"),
        ("regarding.name=b,regarding.uid=1", "b"),
        ("regarding.apiVersion=v1,regarding.fieldPath=,regarding.resourceVersion=", "ab"),
        ("reportingController=wire.test/controller,type=Normal,reason=R", "ab"),
    ] {
        assert_eq!(select(&server, &events, selector).await, expected, "{selector}");
    }
    let here = format!("regarding.namespace={}", server.namespace);
    assert_eq!(select(&server, &events, &here).await, "ab");
    refused(&server, &events, "involvedObject.kind=Pod", "field label not supported: involvedObject.kind")
        .await;
}

async fn job_is_selected_by_its_number_of_successes(server: Server) {
    let jobs = server.group("batch/v1", "jobs");
    let mut template = json!({ "spec": pod("a")["spec"] });
    template["spec"]["restartPolicy"] = "Never".into();
    for name in ["a", "b"] {
        let job = json!({ "metadata": { "name": name }, "spec": { "suspend": true, "template": template } });
        server.create(&jobs, &job).await;
    }
    let done = json!({ "status": { "succeeded": 1 } });
    server.patch(&format!("{jobs}/b/status"), MERGE, &done).await.expect(200);
    for (selector, expected) in [("status.successful=0", "a"), ("status.successful=1", "b")] {
        assert_eq!(select(&server, &jobs, selector).await, expected, "{selector}");
    }
    let message = "field label \"status.succeeded\" not supported for Job";
    refused(&server, &jobs, "status.succeeded=1", message).await;
}

async fn unset_number_or_boolean_can_be_selected(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    assert_eq!(select(&server, &server.core("pods"), "spec.hostNetwork=false").await, "a");
    assert_eq!(select(&server, &server.core("pods"), "spec.hostNetwork=").await, "");
    let template = json!({ "metadata": { "labels": { "app": "a" } }, "spec": pod("a")["spec"] });
    let spec = json!({ "replicas": 0, "selector": { "app": "a" }, "template": template });
    let controllers = server.core("replicationcontrollers");
    server.create(&controllers, &json!({ "metadata": { "name": "a" }, "spec": spec })).await;
    assert_eq!(select(&server, &controllers, "status.replicas=0").await, "a");
    let name = &server.namespace;
    server.create("/api/v1/nodes", &json!({ "metadata": { "name": name } })).await;
    let selector = format!("metadata.name={name},spec.unschedulable=false");
    assert_eq!(select(&server, "/api/v1/nodes", &selector).await, *name);
    server.delete(&format!("/api/v1/nodes/{name}")).await.expect(200);
}

async fn label_and_field_selectors_must_both_match(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    server.label("a", "x", "1").await;
    let parameters = [("labelSelector", "x=1"), ("fieldSelector", "metadata.name=b")];
    assert!(names(&server.list(&parameters).await.expect(200)).is_empty());
}

async fn equality_and_inequality_select_by_field(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    for (selector, expected) in
        [("metadata.name==a", "a"), ("metadata.name!=a", "b"), ("metadata.name=a,metadata.name=b", "")]
    {
        assert_eq!(select(&server, &server.secrets(), selector).await, expected, "{selector}");
    }
}

async fn empty_requirements_are_skipped(server: Server) {
    server.create_secrets(&["a", "b"]).await;
    assert_eq!(select(&server, &server.secrets(), ",metadata.name=a,").await, "a");
}

async fn special_characters_in_values_can_be_escaped(server: Server) {
    server.create_secrets(&["a"]).await;
    // Names cannot contain these characters. The test checks that they are parsed as part of the
    // value.
    for selector in ["metadata.name=a\\,b", "metadata.name=a\\=b", "metadata.name=a\\\\b"] {
        assert_eq!(select(&server, &server.secrets(), selector).await, "", "{selector}");
    }
    assert_eq!(select(&server, &server.secrets(), "metadata.name!=a\\,b,metadata.name=a").await, "a");
}

async fn an_unknown_field_of_a_kind_with_fields_is_refused(server: Server) {
    refused(&server, &server.secrets(), "spec.x=1", "field label not supported: spec.x").await;
    refused(&server, &server.core("pods"), "spec.volumes=1", "field label not supported: spec.volumes").await;
}

async fn an_unknown_field_of_a_kind_without_fields_is_refused(server: Server) {
    let message = |field: &str| {
        format!("\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
    };
    for (path, field) in [
        (server.core("configmaps"), "data"),
        (server.group("apps/v1", "deployments"), "spec.replicas"),
        (server.group("apps/v1", "replicasets"), "status.replicas"),
        (server.group("coordination.k8s.io/v1", "leases"), "spec.holderIdentity"),
    ] {
        refused(&server, &path, &format!("{field}=x"), &message(field)).await;
    }
}

async fn a_cluster_wide_kind_has_no_namespace_to_select_by(server: Server) {
    refused(
        &server,
        "/api/v1/nodes",
        "metadata.namespace=x",
        "field label not supported: metadata.namespace",
    )
    .await;
}

async fn a_requirement_without_operator_is_refused(server: Server) {
    for (selector, part) in [("metadata.name", "metadata.name"), ("metadata.name=a,abc", "abc")] {
        let message = format!("invalid selector: '{selector}'; can't understand '{part}'");
        refused(&server, &server.secrets(), selector, &message).await;
    }
}

async fn an_unknown_escape_is_refused(server: Server) {
    refused(
        &server,
        &server.secrets(),
        "metadata.name=a\\x",
        "invalid field selector: invalid escape sequence: \\x",
    )
    .await;
}

async fn unescaped_operator_sign_is_refused(server: Server) {
    let message = "invalid field selector: unescaped character in value: 61";
    refused(&server, &server.secrets(), "metadata.name=a=b", message).await;
}
