//! Paths and methods, and the errors of unknown ones.

use http::Method;
use serde_json::json;

use crate::objects::secret;
use crate::scenario::{Scenario, scenario};
use crate::server::Server;

pub(crate) fn scenarios() -> Vec<Scenario> {
    vec![
        scenario(a_path_outside_of_the_api_is_not_found_in_plain_text),
        scenario(an_unknown_group_is_not_found_in_plain_text),
        scenario(an_unknown_resource_of_a_group_is_not_found),
        scenario(an_unknown_version_of_a_group_is_not_found),
        scenario(a_cluster_wide_resource_is_in_no_namespace),
        scenario(a_namespaced_object_is_found_in_its_namespace_only),
        scenario(an_unknown_method_is_not_allowed),
        scenario(an_object_is_not_created_at_its_own_path),
        scenario(a_slash_at_the_end_does_not_matter),
        scenario(an_invalid_timeout_is_refused),
        scenario(version_endpoint_returns_the_version),
        scenario(health_endpoints_return_ok),
        scenario(verbose_health_check_lists_its_parts),
    ]
}

const NOT_FOUND: &str = "the server could not find the requested resource";
const NOT_ALLOWED: &str = "the server does not allow this method on the requested resource";

async fn is_not_found_in_plain_text(server: &Server, path: &str) {
    let answer = server.get(path).await;
    assert_eq!((answer.code, answer.text().as_str()), (404, "404 page not found\n"), "{path}");
    assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
}

async fn a_path_outside_of_the_api_is_not_found_in_plain_text(server: Server) {
    is_not_found_in_plain_text(&server, "/wire").await;
    is_not_found_in_plain_text(&server, "/wire/v1/secrets").await;
}

async fn an_unknown_group_is_not_found_in_plain_text(server: Server) {
    for path in ["/apis/wire.test", "/apis/nothing.wire.test/v1", "/apis/nothing.wire.test/v1/things"] {
        is_not_found_in_plain_text(&server, path).await;
    }
}

async fn an_unknown_resource_of_a_group_is_not_found(server: Server) {
    for path in ["/api/v1/things", "/apis/apps/v1/things", &server.core("things"), &server.core("things/a")] {
        server.get(path).await.refused(404, "NotFound", NOT_FOUND);
    }
    server.post(&server.core("things"), &json!({})).await.refused(404, "NotFound", NOT_FOUND);
    // These groups have only kinds of reviews.
    for path in ["/apis/authentication.k8s.io/v1/things", "/apis/authorization.k8s.io/v1/things/a"] {
        server.get(path).await.refused(404, "NotFound", NOT_FOUND);
    }
    let review = server.group("authorization.k8s.io/v1", "selfsubjectaccessreviews");
    server.post(&review, &json!({})).await.refused(404, "NotFound", NOT_FOUND);
}

async fn an_unknown_version_of_a_group_is_not_found(server: Server) {
    for path in ["/api/v9", "/api/v9/secrets", "/apis/apps/v9", "/apis/apps/v9/deployments"] {
        server.get(path).await.refused(404, "NotFound", NOT_FOUND);
    }
}

async fn a_cluster_wide_resource_is_in_no_namespace(server: Server) {
    server.get(&server.core("nodes")).await.refused(404, "NotFound", NOT_FOUND);
}

async fn a_namespaced_object_is_found_in_its_namespace_only(server: Server) {
    server.get("/api/v1/secrets/a").await.refused(404, "NotFound", NOT_FOUND);
}

async fn an_unknown_method_is_not_allowed(server: Server) {
    for method in [Method::OPTIONS, Method::from_bytes(b"TWIST").expect("a method")] {
        server.call(method, &server.secrets(), &[], "").await.refused(405, "MethodNotAllowed", NOT_ALLOWED);
    }
}

async fn an_object_is_not_created_at_its_own_path(server: Server) {
    server.post(&server.secret_path("a"), &secret("a")).await.refused(405, "MethodNotAllowed", NOT_ALLOWED);
}

async fn a_slash_at_the_end_does_not_matter(server: Server) {
    let list = server.get(&format!("{}/", server.secrets())).await.expect(200);
    assert_eq!(list["kind"], "SecretList");
}

/// The texts of the errors are those of Go's `time.ParseDuration`.
async fn an_invalid_timeout_is_refused(server: Server) {
    for (timeout, error) in [
        ("soon", "invalid duration \"soon\""),
        ("-", "invalid duration \"-\""),
        (".s", "invalid duration \".s\""),
        ("9999999h", "invalid duration \"9999999h\""),
        ("1", "missing unit in duration \"1\""),
        ("1m30", "missing unit in duration \"1m30\""),
        ("1d", "unknown unit \"d\" in duration \"1d\""),
    ] {
        let message = format!("invalid timeout specified in the request URL - time: {error}");
        for path in [server.secrets(), "/version".to_owned(), "/livez".to_owned(), "/wire".to_owned()] {
            let answer = server.get(&format!("{path}?timeout={timeout}")).await;
            answer.refused(400, "BadRequest", &message);
        }
        server.post(&format!("{}?timeout={timeout}", server.secrets()), &json!({})).await.refused_with(
            400,
            "BadRequest",
            error,
        );
    }
    for timeout in ["", "0", "-5s", "1h", "1.5h30m", "10s&timeout=soon"] {
        server.get(&format!("{}?timeout={timeout}", server.secrets())).await.expect(200);
    }
    let watch = format!("{}?watch=true&timeoutSeconds=1&timeout=soon", server.secrets());
    assert_eq!(server.get(&watch).await.code, 200);
}

async fn version_endpoint_returns_the_version(server: Server) {
    let version = server.get("/version").await.expect(200);
    for field in ["major", "minor", "gitVersion", "platform"] {
        assert!(version[field].is_string(), "{version}");
    }
    assert_eq!(version["major"], "1");
}

async fn health_endpoints_return_ok(server: Server) {
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = server.get(path).await;
        assert_eq!((answer.code, answer.text().as_str()), (200, "ok"), "{path}");
    }
}

async fn verbose_health_check_lists_its_parts(server: Server) {
    for name in ["livez", "readyz"] {
        for path in [format!("/{name}?verbose"), format!("/{name}?verbose=true")] {
            let answer = server.get(&path).await;
            assert_eq!((answer.code, answer.header("content-type")), (200, "text/plain; charset=utf-8"));
            let text = answer.whole_text();
            assert!(text.starts_with("[+]ping ok\n[+]log ok\n") && text.contains("[+]etcd ok\n"), "{text}");
            assert!(text.ends_with(&format!("{name} check passed\n")), "{text}");
            assert_eq!(text.contains("[+]shutdown ok\n"), name == "readyz", "{text}");
        }
        let text = server.get(&format!("/{name}?verbose&exclude=log")).await.whole_text();
        assert!(text.contains("[+]log excluded: ok\n"), "{text}");
    }
}
