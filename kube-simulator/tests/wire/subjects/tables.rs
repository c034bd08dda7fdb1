//! Tables, as `kubectl get` requests them.

use http::Method;
use serde_json::{Value, json};

use crate::custom::{DEFINITIONS, Widgets};
use crate::objects::{deployment, pod, secret, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{JSON, MERGE, Server, TABLE, with_query};

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_list_as_a_table),
        scenario(an_object_as_a_table),
        scenario(row_has_metadata_by_default),
        scenario(row_has_the_whole_object_on_request),
        scenario(row_has_no_object_on_request),
        scenario(unknown_value_of_include_object_is_refused),
        scenario(a_table_is_paged_like_any_list),
        scenario(an_empty_table_has_columns_and_no_rows),
        scenario(a_watch_as_tables),
        scenario(list_end_of_a_table_has_metadata_without_objects),
        scenario(the_columns_of_pods),
        scenario(status_of_a_pod_describes_its_containers),
        scenario(status_of_a_deleted_pod_depends_on_its_phase),
        scenario(the_columns_of_deployments),
        scenario(the_columns_of_events_begin_with_the_time),
        scenario(time_in_the_future_is_shown_as_invalid),
        scenario(the_columns_of_custom_objects),
        scenario(custom_objects_without_columns_show_their_age),
        scenario(cell_without_a_value_of_its_type_is_null),
        scenario(the_cells_of_workloads),
        scenario(the_cells_of_services_and_ingresses),
        scenario(ingress_addresses_precede_the_external_ips),
        scenario(the_cells_of_endpoints),
        scenario(the_cells_of_volumes_and_quotas),
        scenario(the_cells_of_role_bindings_and_budgets),
        scenario(error_is_not_sent_as_a_table),
        scenario(a_table_of_an_unknown_version_is_not_acceptable),
    ]
}

/// Returns the column names of a table. Columns after the bar appear only in the wide view.
fn columns(table: &Value) -> String {
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let wide = |wanted: bool| {
        let named = columns.iter().filter(|column| (column["priority"] != 0) == wanted);
        named.map(|column| column["name"].as_str().expect("a name")).collect::<Vec<_>>().join(", ")
    };
    format!("{} | {}", wide(false), wide(true))
}

fn rows(table: &Value) -> &Vec<Value> {
    table["rows"].as_array().expect("rows")
}

fn first_cells(table: &Value) -> Vec<&str> {
    rows(table).iter().map(|row| row["cells"][0].as_str().expect("a name")).collect()
}

async fn make(server: &Server) {
    let mut object = secret("a");
    object["data"] = json!({ "k": "dg==" });
    server.create(&server.secrets(), &object).await;
    server.create_secrets(&["b"]).await;
}

async fn a_list_as_a_table(server: Server) {
    make(&server).await;
    let table = server.get_as(&server.secrets(), TABLE).await.expect(200);
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(first_cells(&table), ["a", "b"]);
    assert!(version(&table) > 0);
    let name = &table["columnDefinitions"][0];
    assert_eq!(
        (&name["name"], &name["type"], &name["format"]),
        (&json!("Name"), &json!("string"), &json!("name"))
    );
}

async fn an_object_as_a_table(server: Server) {
    make(&server).await;
    let table = server.get_as(&server.secret_path("a"), TABLE).await.expect(200);
    assert_eq!((&table["kind"], first_cells(&table)), (&json!("Table"), vec!["a"]));
    let object = server.get(&server.secret_path("a")).await.expect(200);
    assert_eq!(version(&table), version(&object));
}

async fn row_has_metadata_by_default(server: Server) {
    make(&server).await;
    for path in [server.secrets(), format!("{}?includeObject=Metadata", server.secrets())] {
        let table = server.get_as(&path, TABLE).await.expect(200);
        let object = &rows(&table)[0]["object"];
        assert_eq!(
            (&object["kind"], &object["apiVersion"]),
            (&json!("PartialObjectMetadata"), &json!("meta.k8s.io/v1"))
        );
        assert_eq!((&object["metadata"]["name"], object.get("data")), (&json!("a"), None));
    }
}

async fn row_has_the_whole_object_on_request(server: Server) {
    make(&server).await;
    let table = server.get_as(&format!("{}?includeObject=Object", server.secrets()), TABLE).await.expect(200);
    let object = &rows(&table)[0]["object"];
    assert_eq!((&object["kind"], &object["data"]), (&json!("Secret"), &json!({ "k": "dg==" })));
}

async fn row_has_no_object_on_request(server: Server) {
    make(&server).await;
    let table = server.get_as(&format!("{}?includeObject=None", server.secrets()), TABLE).await.expect(200);
    assert_eq!(rows(&table)[0]["object"], Value::Null);
}

async fn unknown_value_of_include_object_is_refused(server: Server) {
    make(&server).await;
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": \
        must be 'Metadata', 'Object', 'None', or empty";
    let path = format!("{}?includeObject=Some", server.secrets());
    server.get_as(&path, TABLE).await.refused(400, "BadRequest", message);
    // The parameter applies to tables only.
    server.get_as(&path, JSON).await.expect(200);
}

async fn a_table_is_paged_like_any_list(server: Server) {
    make(&server).await;
    let first = server.get_as(&format!("{}?limit=1", server.secrets()), TABLE).await.expect(200);
    assert_eq!((first_cells(&first), &first["metadata"]["remainingItemCount"]), (vec!["a"], &json!(1)));
    let path = with_query(&server.secrets(), &[("limit", "1"), ("continue", token(&first))]);
    assert_eq!(first_cells(&server.get_as(&path, TABLE).await.expect(200)), ["b"]);
}

async fn an_empty_table_has_columns_and_no_rows(server: Server) {
    let table = server.get_as(&server.secrets(), TABLE).await.expect(200);
    assert!(columns(&table).starts_with("Name, "));
    assert_eq!(table["rows"], json!([]));
}

async fn a_watch_as_tables(server: Server) {
    make(&server).await;
    let mut watch = server.watch_as(&server.secrets(), TABLE, &[("allowWatchBookmarks", "true")]).await;
    for (name, describes) in [("a", true), ("b", false)] {
        let event = watch.event().await.expect("an event");
        let table = &event["object"];
        assert_eq!(
            (&event["type"], &table["kind"], first_cells(table)),
            (&json!("ADDED"), &json!("Table"), vec![name])
        );
        // Only the first table of a watch has the columns.
        let columns = table["columnDefinitions"].as_array().map_or(0, Vec::len);
        assert_eq!(columns > 0, describes, "{table}");
    }
    let bookmark = watch.event().await.expect("a bookmark");
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Table")));
    let metadata = &rows(&bookmark["object"])[0]["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    assert_eq!(metadata["resourceVersion"], bookmark["object"]["metadata"]["resourceVersion"]);
}

async fn list_end_of_a_table_has_metadata_without_objects(server: Server) {
    make(&server).await;
    let parameters = [("allowWatchBookmarks", "true"), ("includeObject", "None")];
    let mut watch = server.watch_as(&server.secrets(), TABLE, &parameters).await;
    for _ in ["a", "b"] {
        let event = watch.event().await.expect("an event");
        assert_eq!((&event["type"], &rows(&event["object"])[0]["object"]), (&json!("ADDED"), &Value::Null));
    }
    let end = watch.event().await.expect("a bookmark");
    let metadata = &rows(&end["object"])[0]["object"]["metadata"];
    assert_eq!((&end["type"], metadata["resourceVersion"].is_string()), (&json!("BOOKMARK"), true));
    assert_eq!(metadata["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
}

async fn the_columns_of_pods(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let table = server.get_as(&server.core("pods"), TABLE).await.expect(200);
    let expected = "Name, Ready, Status, Restarts, Age | IP, Node, Nominated Node, Readiness Gates";
    assert_eq!(columns(&table), expected);
    let cells = rows(&table)[0]["cells"].as_array().expect("cells");
    assert_eq!(cells[..4], ["a", "0/1", "Pending", "0"]);
    assert_eq!(cells[6], "<none>");
}

/// Sets the status of a pod, and returns the cells `Ready`, `Status` and `Restarts`.
async fn pod_cells(server: &Server, status: &Value) -> String {
    let path = server.core("pods/a");
    let mut whole = json!({ "phase": "Pending", "reason": null, "conditions": null });
    whole["initContainerStatuses"] = Value::Null;
    whole["containerStatuses"] = Value::Null;
    for (name, value) in status.as_object().expect("fields").clone() {
        whole[name] = value;
    }
    server.patch(&format!("{path}/status"), MERGE, &json!({ "status": whole })).await.expect(200);
    let table = server.get_as(&path, TABLE).await.expect(200);
    ["Ready", "Status", "Restarts"].map(|column| cell(&table, column).as_str().expect("a text")).join(" ")
}

fn cell<'t>(table: &'t Value, column: &str) -> &'t Value {
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let index = columns.iter().position(|found| found["name"] == column).expect("the column");
    &rows(table)[0]["cells"][index]
}

/// Returns the status of a container. A ready container has also started.
fn container(name: &str, ready: bool, state: &Value) -> Value {
    let mut status = json!({ "name": name, "image": "", "imageID": "", "restartCount": 0 });
    status["ready"] = ready.into();
    status["started"] = ready.into();
    status["state"] = state.clone();
    status
}

async fn status_of_a_pod_describes_its_containers(server: Server) {
    let mut pod = pod("a");
    pod["spec"]["initContainers"] = json!([
        { "name": "side", "image": "example.test/image", "restartPolicy": "Always" },
        { "name": "setup", "image": "example.test/image" },
    ]);
    server.create(&server.core("pods"), &pod).await;
    let waiting = |reason: &str| json!({ "waiting": { "reason": reason } });
    let ended = |code: i32, signal: i32| json!({ "terminated": { "exitCode": code, "signal": signal } });
    let completed = json!({ "terminated": { "exitCode": 0, "reason": "Completed" } });
    let running = json!({ "running": {} });
    let side = container("side", true, &running);
    let ready = container("main", true, &running);
    let mut restarted = ready.clone();
    restarted["restartCount"] = 3.into();
    restarted["lastState"]["terminated"] = json!({ "exitCode": 1, "finishedAt": "2100-01-01T00:00:00Z" });
    let gated = json!([{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }]);
    let init = |containers: Value| json!({ "initContainerStatuses": containers });
    let main = |containers: Value| {
        let init = [&side, &container("setup", false, &completed)];
        json!({ "phase": "Running", "initContainerStatuses": init, "containerStatuses": containers })
    };
    let cases = [
        (json!({ "conditions": gated }), "0/2 SchedulingGated 0"),
        (init(json!([container("side", false, &waiting("ErrImagePull"))])), "0/2 Init:ErrImagePull 0"),
        (init(json!([side, container("setup", false, &running)])), "1/2 Init:1/2 0"),
        (init(json!([side, container("setup", false, &ended(1, 0))])), "1/2 Init:ExitCode:1 0"),
        (main(json!([container("main", false, &waiting("CrashLoopBackOff"))])), "1/2 CrashLoopBackOff 0"),
        (main(json!([ready])), "2/2 Running 0"),
        (main(json!([restarted])), "2/2 Running 3 (<invalid> ago)"),
        (main(json!([container("main", false, &ended(137, 9))])), "1/2 Signal:9 0"),
        (main(json!([container("main", false, &completed)])), "1/2 Completed 0"),
        (
            main(json!([container("main", false, &completed), container("more", true, &running)])),
            "2/2 NotReady 0",
        ),
        (json!({ "phase": "Failed", "reason": "Evicted" }), "0/2 Evicted 0"),
    ];
    for (status, expected) in cases {
        assert_eq!(pod_cells(&server, &status).await, expected, "{status}");
    }
}

async fn status_of_a_deleted_pod_depends_on_its_phase(server: Server) {
    let mut pod = pod("a");
    // The pod stays in its grace period, because its node does not exist.
    pod["spec"]["nodeName"] = server.no_such_node().into();
    server.create(&server.core("pods"), &pod).await;
    server.delete(&server.core("pods/a")).await.expect(200);
    let cases = [
        (json!({ "phase": "Running" }), "0/1 Terminating 0"),
        (json!({ "phase": "Running", "reason": "NodeLost" }), "0/1 Unknown 0"),
        (json!({ "phase": "Succeeded" }), "0/1 Succeeded 0"),
    ];
    for (status, expected) in cases {
        assert_eq!(pod_cells(&server, &status).await, expected, "{status}");
    }
}

async fn the_columns_of_deployments(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let table = server.get_as(&path, TABLE).await.expect(200);
    assert!(columns(&table).starts_with("Name, Ready, Up-to-date, Available, Age | "), "{}", columns(&table));
    assert_eq!(rows(&table)[0]["cells"][1], "0/0");
}

async fn the_columns_of_events_begin_with_the_time(server: Server) {
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": "a" },
        "involvedObject": { "kind": "Pod", "name": "web", "namespace": server.namespace },
        "reason": "Tested",
        "message": " it works ",
        "type": "Normal",
        "source": { "component": "tester", "host": "here" },
    });
    let path = server.core("events");
    server.create(&path, &event).await;
    let table = server.get_as(&path, TABLE).await.expect(200);
    let wide = "Subobject, Source, First Seen, Count, Name";
    assert_eq!(columns(&table), format!("Last Seen, Type, Reason, Object, Message | {wide}"));
    let expected =
        r#"["<unknown>","Normal","Tested","pod/web","","tester, here","it works","<unknown>",1,"a"]"#;
    assert_eq!(rows(&table)[0]["cells"].to_string(), expected);
}

async fn time_in_the_future_is_shown_as_invalid(server: Server) {
    let event = json!({
        "metadata": { "name": "a" },
        "involvedObject": { "kind": "Pod", "name": "web", "namespace": server.namespace },
        "firstTimestamp": "2100-01-01T00:00:00Z",
        "lastTimestamp": "2100-01-01T00:00:00Z",
    });
    let path = server.core("events");
    server.create(&path, &event).await;
    let table = server.get_as(&path, TABLE).await.expect(200);
    let cells = &rows(&table)[0]["cells"];
    let (last_seen, first_seen) = (&cells[0], &cells[7]);
    assert_eq!((last_seen, first_seen), (&json!("<invalid>"), &json!("<invalid>")));
}

/// Creates an object, and compares the cells of its table row, without the age.
async fn check_cells(server: &Server, path: &str, object: &Value, expected: &str) {
    // The response to the write has the object as written. Later, controllers may set its status.
    let headers = [("content-type", JSON), ("accept", TABLE)];
    let table = server.call(Method::POST, path, &headers, &object.to_string()).await.expect(201);
    let definitions = table["columnDefinitions"].as_array().expect("columns");
    let cells = rows(&table)[0]["cells"].as_array().expect("cells");
    assert_eq!(definitions.len(), cells.len(), "{table}");
    let shown = definitions.iter().zip(cells).filter(|(column, _)| column["name"] != "Age");
    let shown: Vec<String> = shown.map(|(_, cell)| cell.to_string()).collect();
    assert_eq!(shown.join(" "), expected, "{path}");
}

/// Returns an object of a kind, with these fields.
fn object(api_version: &str, kind: &str, fields: &Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } });
    for (name, value) in fields.as_object().expect("fields").clone() {
        object[name] = value;
    }
    object
}

async fn the_cells_of_workloads(server: Server) {
    let template = &deployment("a")["spec"]["template"];
    let mut of_job = template["spec"].clone();
    of_job["restartPolicy"] = "Never".into();
    let selector = json!({ "matchLabels": { "app": "a" } });
    let set = object(
        "apps/v1",
        "StatefulSet",
        &json!({
            "spec": { "replicas": 0, "serviceName": "a", "selector": selector, "template": template },
        }),
    );
    let path = server.group("apps/v1", "statefulsets");
    check_cells(&server, &path, &set, r#""a" "0/0" "main" "example.test/image""#).await;
    let mut of_nowhere = template.clone();
    of_nowhere["spec"]["nodeSelector"] = json!({ "nowhere": "yes" });
    let daemons =
        object("apps/v1", "DaemonSet", &json!({ "spec": { "selector": selector, "template": of_nowhere } }));
    let path = server.group("apps/v1", "daemonsets");
    let expected = r#""a" 0 0 0 0 0 "nowhere=yes" "main" "example.test/image" "app=a""#;
    check_cells(&server, &path, &daemons, expected).await;
    let job_spec = json!({ "template": { "spec": of_job } });
    let schedule = json!({ "schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": { "spec": job_spec } });
    let cron_job = object("batch/v1", "CronJob", &json!({ "spec": schedule }));
    let path = server.group("batch/v1", "cronjobs");
    let expected = r#""a" "0 0 1 1 *" "<none>" "True" 0 "<none>" "main" "example.test/image" "<none>""#;
    check_cells(&server, &path, &cron_job, expected).await;
    let of_resource = |name: &str| {
        let target = json!({ "type": "Utilization", "averageUtilization": 50 });
        json!({ "type": "Resource", "resource": { "name": name, "target": target } })
    };
    let of_pods = json!({
        "type": "Pods",
        "pods": { "metric": { "name": "load" }, "target": { "type": "AverageValue", "averageValue": "1" } },
    });
    let metrics = json!([of_resource("cpu"), of_resource("memory"), of_pods]);
    let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody" });
    let spec = json!({ "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3, "metrics": metrics });
    let scaler = object("autoscaling/v2", "HorizontalPodAutoscaler", &json!({ "spec": spec }));
    let path = server.group("autoscaling/v2", "horizontalpodautoscalers");
    let expected =
        r#""a" "Deployment/nobody" "cpu: <unknown>/50%, memory: <unknown>/50% + 1 more..." "2" 3 0"#;
    check_cells(&server, &path, &scaler, expected).await;
}

async fn the_cells_of_services_and_ingresses(server: Server) {
    let rule = |host: &str| {
        let backend = json!({ "service": { "name": "a", "port": { "number": 80 } } });
        let path = json!({ "path": "/", "pathType": "Prefix", "backend": backend });
        json!({ "host": host, "http": { "paths": [path] } })
    };
    let rules = ["a.test", "b.test", "c.test", "d.test"].map(rule);
    let tls = json!([{ "hosts": ["a.test"], "secretName": "a" }]);
    let ingress =
        object("networking.k8s.io/v1", "Ingress", &json!({ "spec": { "rules": rules, "tls": tls } }));
    let path = server.group("networking.k8s.io/v1", "ingresses");
    let expected = r#""a" "<none>" "a.test,b.test,c.test + 1 more..." "" "80, 443""#;
    check_cells(&server, &path, &ingress, expected).await;
    let selector = json!({
        "matchLabels": { "app": "a", "app.test/name": "a" },
        "matchExpressions": [
            { "key": "tier", "operator": "In", "values": ["x", "b"] },
            { "key": "old", "operator": "DoesNotExist" },
        ],
    });
    let spec = json!({ "podSelector": selector, "policyTypes": ["Ingress"] });
    let policy = object("networking.k8s.io/v1", "NetworkPolicy", &json!({ "spec": spec }));
    let path = server.group("networking.k8s.io/v1", "networkpolicies");
    check_cells(&server, &path, &policy, r#""a" "app=a,app.test/name=a,!old,tier in (b,x)""#).await;
    let addresses = ["10.1.2.1", "10.1.2.2", "10.1.2.3", "10.1.2.4"].map(|ip| json!({ "addresses": [ip] }));
    let slice = json!({
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
        "endpoints": addresses,
    });
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", &slice);
    let path = server.group("discovery.k8s.io/v1", "endpointslices");
    let expected = r#""a" "IPv4" "80" "10.1.2.1,10.1.2.2,10.1.2.3 + 1 more...""#;
    check_cells(&server, &path, &slice, expected).await;
}

async fn ingress_addresses_precede_the_external_ips(server: Server) {
    let external = json!(["10.9.0.2", "10.9.0.1"]);
    let spec = json!({ "type": "LoadBalancer", "ports": [{ "port": 80 }], "externalIPs": external });
    server.create(&server.core("services"), &object("v1", "Service", &json!({ "spec": spec }))).await;
    let path = server.core("services/a");
    let shown = async || cell(&server.get_as(&path, TABLE).await.expect(200), "External-IP").clone();
    assert_eq!(shown().await, "10.9.0.2,10.9.0.1");
    let address = |ip: &str| json!({ "ip": ip, "ipMode": "VIP" });
    let mut ingress = ["10.8.0.2", "10.8.0.1", "10.8.0.2"].map(address).to_vec();
    ingress.push(json!({ "hostname": "lb.test" }));
    let balanced = json!({ "status": { "loadBalancer": { "ingress": ingress } } });
    server.patch(&format!("{path}/status"), MERGE, &balanced).await.expect(200);
    assert_eq!(shown().await, "10.8.0.1,10.8.0.2,lb.test,10.9.0.2,10.9.0.1");
}

async fn the_cells_of_endpoints(server: Server) {
    let addresses = json!([{ "ip": "10.1.2.1" }, { "ip": "10.1.2.2" }]);
    let ports = json!([
        { "name": "http", "port": 80, "protocol": "TCP" },
        { "name": "https", "port": 443, "protocol": "TCP" },
    ]);
    let subsets = json!([{ "addresses": addresses, "ports": ports }]);
    let endpoints = object("v1", "Endpoints", &json!({ "subsets": subsets }));
    let expected = r#""a" "10.1.2.1:80,10.1.2.2:80,10.1.2.1:443 + 1 more...""#;
    check_cells(&server, &server.core("endpoints"), &endpoints, expected).await;
    let subsets = json!([{ "notReadyAddresses": addresses, "ports": ports }]);
    let mut unready = object("v1", "Endpoints", &json!({ "subsets": subsets }));
    unready["metadata"]["name"] = "b".into();
    check_cells(&server, &server.core("endpoints"), &unready, r#""b" """#).await;
    let slice = json!({ "addressType": "IPv4", "endpoints": [] });
    let slice = object("discovery.k8s.io/v1", "EndpointSlice", &slice);
    let path = server.group("discovery.k8s.io/v1", "endpointslices");
    check_cells(&server, &path, &slice, r#""a" "IPv4" "<unset>" "<unset>""#).await;
}

async fn the_cells_of_volumes_and_quotas(server: Server) {
    let spec = json!({
        "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } },
        "storageClassName": "none",
        "volumeMode": "Filesystem",
    });
    let claim = object("v1", "PersistentVolumeClaim", &json!({ "spec": spec }));
    let expected = r#""a" "Pending" "" "" "" "none" "<unset>" "Filesystem""#;
    check_cells(&server, &server.core("persistentvolumeclaims"), &claim, expected).await;
    let map =
        object("v1", "ConfigMap", &json!({ "data": { "a": "1", "b": "2" }, "binaryData": { "c": "Yw==" } }));
    check_cells(&server, &server.core("configmaps"), &map, r#""a" 3"#).await;
    let template = object("v1", "PodTemplate", &json!({ "template": deployment("a")["spec"]["template"] }));
    let expected = r#""a" "main" "example.test/image" "app=a""#;
    check_cells(&server, &server.core("podtemplates"), &template, expected).await;
    let revision = json!({ "revision": 7, "data": {} });
    let revision = object("apps/v1", "ControllerRevision", &revision);
    let path = server.group("apps/v1", "controllerrevisions");
    check_cells(&server, &path, &revision, r#""a" "<none>" 7"#).await;
    let lease = object("coordination.k8s.io/v1", "Lease", &json!({ "spec": { "holderIdentity": "me" } }));
    check_cells(&server, &server.group("coordination.k8s.io/v1", "leases"), &lease, r#""a" "me""#).await;
}

async fn the_cells_of_role_bindings_and_budgets(server: Server) {
    let subjects = json!([
        { "kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io" },
        { "kind": "Group", "name": "ops", "apiGroup": "rbac.authorization.k8s.io" },
        { "kind": "ServiceAccount", "name": "robot", "namespace": "far" },
    ]);
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" });
    let fields = json!({ "roleRef": role, "subjects": subjects });
    let binding = object("rbac.authorization.k8s.io/v1", "RoleBinding", &fields);
    let path = server.group("rbac.authorization.k8s.io/v1", "rolebindings");
    check_cells(&server, &path, &binding, r#""a" "Role/reader" "ada" "ops" "far/robot""#).await;
    let spec = json!({ "maxUnavailable": "25%", "selector": { "matchLabels": { "app": "nobody" } } });
    let budget = object("policy/v1", "PodDisruptionBudget", &json!({ "spec": spec }));
    let path = server.group("policy/v1", "poddisruptionbudgets");
    check_cells(&server, &path, &budget, r#""a" "N/A" "25%" 0"#).await;
    let fields = json!({ "spec": { "hard": { "pods": "5" } } });
    let quota = object("v1", "ResourceQuota", &fields);
    check_cells(&server, &server.core("resourcequotas"), &quota, r#""a" "" """#).await;
}

async fn error_is_not_sent_as_a_table(server: Server) {
    server.get_as(&server.secret_path("a"), TABLE).await.refused(404, "NotFound", "secrets \"a\" not found");
}

async fn a_table_of_an_unknown_version_is_not_acceptable(server: Server) {
    for form in ["as=Table;g=meta.k8s.io;v=v9", "as=Table;g=wire.test;v=v1"] {
        let answer = server.get_as(&server.secrets(), &format!("application/json;{form}")).await;
        let message = "only the following media types are accepted: application/json";
        answer.refused_with(406, "NotAcceptable", message);
    }
}

async fn the_columns_of_custom_objects(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        version["additionalPrinterColumns"] = json!([
            { "name": "Color", "type": "string", "jsonPath": ".spec.color" },
            { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas" },
        ]);
    }
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    widgets.create("a", "red").await;
    let table = server.get_as(&widgets.path(), TABLE).await.expect(200);
    assert_eq!(columns(&table), "Name, Color, Replicas | ");
    assert_eq!(rows(&table)[0]["cells"], json!(["a", "red", 1]));
}

async fn custom_objects_without_columns_show_their_age(server: Server) {
    let widgets = Widgets::define(&server).await;
    let table = server.get_as(&widgets.path(), TABLE).await.expect(200);
    assert_eq!(columns(&table), "Name, Age | ");
    let age = &table["columnDefinitions"][1];
    assert_eq!((&age["type"], &age["format"]), (&json!("date"), &json!("")));
    let description = age["description"].as_str().expect("a description");
    assert!(description.starts_with("CreationTimestamp is a timestamp representing"), "{description}");
}

async fn cell_without_a_value_of_its_type_is_null(server: Server) {
    let widgets = Widgets::of(&server);
    let mut definition = widgets.definition();
    let column = |kind: &str| json!({ "name": kind, "type": kind, "jsonPath": format!(".status.{kind}") });
    for version in definition["spec"]["versions"].as_array_mut().expect("versions") {
        let kinds = ["integer", "number", "boolean", "date", "string"];
        version["additionalPrinterColumns"] = kinds.map(column).into_iter().collect();
    }
    server.create(DEFINITIONS, &definition).await;
    widgets.served().await;
    widgets.create("a", "red").await;
    let path = format!("{}/a", widgets.path());
    let cells = async || rows(&server.get_as(&path, TABLE).await.expect(200))[0]["cells"].clone();
    assert_eq!(cells().await, json!(["a", null, null, null, null, null]));
    let wrong = json!({ "integer": "1", "number": "1", "boolean": 1, "date": 1, "string": 1 });
    let right = json!({ "integer": 1.7, "number": 1.5, "boolean": true, "date": "soon", "string": ["x"] });
    let expected = [
        (wrong, json!(["a", null, null, null, null, "1"])),
        (right, json!(["a", 1, 1.5, true, "<invalid>", r#"["x"]"#])),
    ];
    for (status, expected) in expected {
        let change = json!({ "status": status });
        server.patch(&format!("{path}/status"), MERGE, &change).await.expect(200);
        assert_eq!(cells().await, expected);
    }
}
