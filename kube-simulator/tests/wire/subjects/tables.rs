//! Tables, as `kubectl get` requests them.

use serde_json::{Value, json};

use crate::objects::{deployment, pod, secret, token, version};
use crate::scenario::{Scenario, scenario};
use crate::server::{Server, with_query};

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_list_as_a_table),
        scenario(an_object_as_a_table),
        scenario(a_row_carries_metadata_by_default),
        scenario(a_row_carries_the_whole_object_on_request),
        scenario(a_row_carries_nothing_on_request),
        scenario(a_row_carries_nothing_else),
        scenario(a_table_is_paged_like_any_list),
        scenario(an_empty_table_has_columns_and_no_rows),
        scenario(a_watch_as_tables),
        scenario(the_columns_of_pods),
        scenario(the_columns_of_deployments),
        scenario(a_refusal_is_no_table),
        scenario(a_table_of_an_unknown_version_is_not_acceptable),
    ]
}

/// Returns the column names of a table. Columns after the bar are in the wide view only.
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

async fn a_row_carries_metadata_by_default(server: Server) {
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

async fn a_row_carries_the_whole_object_on_request(server: Server) {
    make(&server).await;
    let table = server.get_as(&format!("{}?includeObject=Object", server.secrets()), TABLE).await.expect(200);
    let object = &rows(&table)[0]["object"];
    assert_eq!((&object["kind"], &object["data"]), (&json!("Secret"), &json!({ "k": "dg==" })));
}

async fn a_row_carries_nothing_on_request(server: Server) {
    make(&server).await;
    let table = server.get_as(&format!("{}?includeObject=None", server.secrets()), TABLE).await.expect(200);
    assert_eq!(rows(&table)[0]["object"], Value::Null);
}

async fn a_row_carries_nothing_else(server: Server) {
    make(&server).await;
    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": \
        must be 'Metadata', 'Object', 'None', or empty";
    let answer = server.get_as(&format!("{}?includeObject=Some", server.secrets()), TABLE).await;
    answer.refused(400, "BadRequest", message);
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
        // Only the first table has the columns.
        let columns = table["columnDefinitions"].as_array().map_or(0, Vec::len);
        assert_eq!(columns > 0, describes, "{table}");
    }
    let bookmark = watch.event().await.expect("a bookmark");
    assert_eq!((&bookmark["type"], &bookmark["object"]["kind"]), (&json!("BOOKMARK"), &json!("Table")));
    let metadata = &rows(&bookmark["object"])[0]["object"]["metadata"];
    assert_eq!(metadata["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    assert_eq!(metadata["resourceVersion"], bookmark["object"]["metadata"]["resourceVersion"]);
}

async fn the_columns_of_pods(server: Server) {
    server.create(&server.core("pods"), &pod("a")).await;
    let table = server.get_as(&server.core("pods"), TABLE).await.expect(200);
    let expected = "Name, Ready, Status, Restarts, Age | IP, Node, Nominated Node, Readiness Gates";
    assert_eq!(columns(&table), expected);
    assert_eq!(rows(&table)[0]["cells"][1], "0/1");
    assert_eq!(
        (&rows(&table)[0]["cells"][2], &rows(&table)[0]["cells"][6]),
        (&json!("Pending"), &json!("<none>"))
    );
}

async fn the_columns_of_deployments(server: Server) {
    let path = server.group("apps/v1", "deployments");
    server.create(&path, &deployment("a")).await;
    let table = server.get_as(&path, TABLE).await.expect(200);
    assert!(columns(&table).starts_with("Name, Ready, Up-to-date, Available, Age | "), "{}", columns(&table));
    assert_eq!(rows(&table)[0]["cells"][1], "0/0");
}

async fn a_refusal_is_no_table(server: Server) {
    server.get_as(&server.secret_path("a"), TABLE).await.refused(404, "NotFound", "secrets \"a\" not found");
}

async fn a_table_of_an_unknown_version_is_not_acceptable(server: Server) {
    let answer = server.get_as(&server.secrets(), "application/json;as=Table;g=meta.k8s.io;v=v9").await;
    answer.refused_with(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json",
    );
}
