//! Tests of access: addresses, hosts, tokens, methods, and the headers of responses.

use axum::http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use informer_monitor::InspectorError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// Sends a request with these headers, and returns the response with its headers as text.
async fn raw(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, request: &str, headers: &str) -> String {
    let text = format!("{request} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(text.as_bytes()).await.expect("the server reads");
    let mut response = String::new();
    soon(stream.read_to_string(&mut response)).await.expect("text");
    response
}

async fn ask(router: &Router, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(router, request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn address_of_other_machines_needs_a_token() {
    let (_simulator, factory) = cluster().await;
    let open = TcpListener::bind("0.0.0.0:0").await.expect("a free port");
    let refused = Inspector::new(&factory).serve(open).await.expect_err("no token");
    assert!(matches!(refused, InspectorError::TokenRequired { address: Some(_) }), "{refused}");
    let refused = Inspector::new(&factory).into_router().expect_err("no token");
    assert!(matches!(refused, InspectorError::TokenRequired { address: None }), "{refused}");
    for token in ["", "too-short", "with a space in it!", "semicolon;semicolon"] {
        let refused = Inspector::new(&factory).token(token).into_router().expect_err("an invalid token");
        assert!(matches!(refused, InspectorError::InvalidToken), "{token:?}: {refused}");
    }
}

#[tokio::test]
async fn without_a_token_the_host_must_be_this_machine() {
    let (_simulator, factory) = cluster().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(Inspector::new(&factory).serve(listener));
    for (host, status) in [
        (format!("Host: {address}\r\n"), "200 OK"),
        ("Host: localhost:1\r\n".to_owned(), "200 OK"),
        ("Host: attacker.example\r\n".to_owned(), "403 Forbidden"),
        // HTTP/1.1 requires a `Host` header. Without it, the answer is 400 from hyper, or 403 from
        // the inspector.
        (String::new(), "40"),
    ] {
        for path in ["/inspect/", "/inspect/api/overview", "/inspect/inspector.js"] {
            let stream = TcpStream::connect(address).await.expect("the server listens");
            let response = raw(stream, &format!("GET {path}"), &host).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{host:?} {path}: {response}");
        }
    }
    let stream = TcpStream::connect(address).await.expect("the server listens");
    let response = raw(stream, "GET /", "Host: localhost\r\n").await;
    assert!(response.contains("location: inspect/"), "{response}");
    server.abort();
}

#[tokio::test]
async fn token_is_accepted_as_header_cookie_or_parameter() {
    let (_simulator, factory) = cluster().await;
    let router = router(Inspector::new(&factory));
    let (bearer, cookie) = (format!("Bearer {TOKEN}"), format!("a=b; informer-inspector={TOKEN}"));
    let wrong = format!("Bearer {}", TOKEN.replace('f', "e"));
    for (headers, status) in [
        (vec![], StatusCode::UNAUTHORIZED),
        (vec![(AUTHORIZATION.as_str(), wrong.as_str())], StatusCode::UNAUTHORIZED),
        (vec![(COOKIE.as_str(), "informer-inspector=0123")], StatusCode::UNAUTHORIZED),
        (vec![(AUTHORIZATION.as_str(), bearer.as_str())], StatusCode::OK),
        (vec![(COOKIE.as_str(), cookie.as_str())], StatusCode::OK),
    ] {
        for path in ["/inspect/", "/inspect/style.css", "/inspect/api/overview"] {
            assert_eq!(ask(&router, "GET", path, &headers).await.status, status, "{path} {headers:?}");
        }
    }
    let page = ask(&router, "GET", &format!("/inspect/?token={TOKEN}"), &[]).await;
    let cookie = page.headers.get(SET_COOKIE).and_then(|cookie| cookie.to_str().ok());
    let expected = format!("informer-inspector={TOKEN}; HttpOnly; SameSite=Strict; Path=/");
    assert_eq!((page.status, cookie), (StatusCode::OK, Some(expected.as_str())));
    let refused = ask(&router, "GET", "/inspect/?token=0123", &[]).await;
    assert_eq!((refused.status, refused.headers.get(SET_COOKIE)), (StatusCode::UNAUTHORIZED, None));
}

#[tokio::test]
async fn methods_other_than_get_are_refused() {
    let (_simulator, factory) = cluster().await;
    let router = router(Inspector::new(&factory));
    let bearer = format!("Bearer {TOKEN}");
    for method in ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] {
        for path in ["/inspect/", "/inspect/api/overview", "/inspect/api/objects"] {
            let response = ask(&router, method, path, &[(AUTHORIZATION.as_str(), &bearer)]).await;
            assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn responses_forbid_other_sources_frames_and_caches() {
    let (_simulator, factory) = cluster().await;
    let router = router(Inspector::new(&factory));
    let bearer = format!("Bearer {TOKEN}");
    for headers in [vec![], vec![(AUTHORIZATION.as_str(), bearer.as_str())]] {
        let response = ask(&router, "GET", "/inspect/", &headers).await;
        let header = |name: &str| response.headers[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        assert_eq!(header("cache-control"), "no-store");
        assert_eq!(header("x-content-type-options"), "nosniff");
    }
}

#[test]
fn page_names_no_other_host() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inspector/page");
    for entry in std::fs::read_dir(folder).expect("the folder of the page") {
        let path = entry.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("text");
        // The namespace of SVG is a name, which no browser requests.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("://"), "{} names a host", path.display());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn unix_socket_is_private_and_replaces_a_stale_one() {
    use std::os::unix::fs::PermissionsExt;
    let (_simulator, factory) = cluster().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("inspector.sock");
    // A socket that no process listens on, like the socket of a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a free path"));
    let server = tokio::spawn(Inspector::new(&factory).serve_unix(path.clone()));
    let stream = soon(async {
        loop {
            let mode = std::fs::metadata(&path).map(|file| file.permissions().mode() & 0o777);
            match tokio::net::UnixStream::connect(&path).await {
                Ok(stream) if mode.is_ok_and(|mode| mode == 0o600) => return stream,
                _ => tokio::task::yield_now().await,
            }
        }
    });
    let response = raw(stream.await, "GET /inspect/api/overview", "Host: localhost\r\n").await;
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    let second = Inspector::new(&factory).serve_unix(&path).await.expect_err("the path is in use");
    assert!(matches!(second, InspectorError::Io(_)), "{second}");
    server.abort();
}

#[cfg(unix)]
#[tokio::test]
async fn socket_that_does_not_refuse_connections_is_kept() {
    let (_simulator, factory) = cluster().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("inspector.sock");
    // A datagram socket accepts no stream. The error is another one than "connection refused".
    let _other = std::os::unix::net::UnixDatagram::bind(&path).expect("a free path");
    let refused = soon(Inspector::new(&factory).serve_unix(&path)).await.expect_err("the path is in use");
    assert!(matches!(refused, InspectorError::Io(_)), "{refused}");
    assert!(path.exists());
}
