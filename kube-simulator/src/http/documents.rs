//! Requests for discovery and `OpenAPI` documents, and for reviews such as
//! `SelfSubjectAccessReview`.

use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use http::{Method, StatusCode};
use serde_json::Value;

use super::accept;
use super::body::ResponseBody;
use super::call::Call;
use super::respond::{self, HttpResponse};
use super::route::Document;
use crate::api::status::{self, Refusal};
use crate::http::discovery::{self, Review};
use crate::http::encoding::Encoding;
use crate::http::openapi;

pub(super) fn answer(call: &Call, document: &Document) -> Result<HttpResponse, Refusal> {
    if call.recorded.method != Method::GET {
        return Err(status::method_not_allowed());
    }
    let server = &call.server;
    let found = match document {
        Document::Paths => Some(discovery::paths(server)),
        Document::CoreVersions | Document::Groups
            if accept::takes_aggregated_discovery(&call.recorded.headers) =>
        {
            return Ok(aggregated(call, document));
        }
        Document::CoreVersions => Some(discovery::core_versions(server)),
        Document::Groups => Some(discovery::groups(server)),
        Document::Group(name) => discovery::group(server, name),
        Document::Resources(path) => discovery::resources(server, path),
        Document::OpenApiV2 => {
            let (media_type, body) = openapi::v2(accept::wants_gnostic(&call.recorded.headers));
            return Ok(respond::typed(StatusCode::OK, media_type, ResponseBody::whole(body)));
        }
        Document::OpenApiIndex => Some(openapi::index(server)),
        Document::OpenApi(path) => {
            let found = openapi::document(server, path);
            return Ok(
                found.map_or_else(respond::page_not_found, |(document, hash)| tagged(&document, &hash))
            );
        }
    };
    let encoding = match document {
        Document::Paths => Encoding::Indented,
        Document::OpenApiIndex => Encoding::Json,
        _ => call.accepted.encoding,
    };
    Ok(found.map_or_else(respond::page_not_found, |found| respond::value(StatusCode::OK, encoding, &found)))
}

pub(super) fn review(call: &Call, review: &Review) -> Result<HttpResponse, Refusal> {
    if call.recorded.method != Method::POST {
        return Err(status::method_not_allowed());
    }
    // The granted rights do not depend on the body, so a body that cannot be decoded is ignored.
    let question = call.object("Review").unwrap_or_default();
    Ok(respond::value(StatusCode::CREATED, call.accepted.encoding, &review.grant(Value::Object(question))))
}

fn aggregated(call: &Call, document: &Document) -> HttpResponse {
    let core = matches!(document, Document::CoreVersions);
    let list = discovery::aggregated(&call.server, core);
    let mut response = respond::value(StatusCode::OK, call.accepted.encoding, &list);
    let content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Returns a response with an `ETag`. Unlike a real server, the simulator ignores `If-None-Match`.
fn tagged(document: &Value, hash: &str) -> HttpResponse {
    let mut response = respond::value(StatusCode::OK, Encoding::Json, document);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", hash)) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}
