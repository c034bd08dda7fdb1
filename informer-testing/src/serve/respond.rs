//! Building responses.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Response, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::Status;
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::gzip;
use crate::fault::CannedResponse;
use crate::list::List;
use crate::object::Object;
use crate::shape::Shape;
use crate::status;

pub(super) type HttpResponse = Response<ResponseBody>;

/// List bodies are built and sent in pieces of about this size, so that no list is ever held twice.
const PIECE: usize = 128 * 1024;

pub(super) fn json(code: StatusCode, body: ResponseBody) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub(super) fn text(code: StatusCode, text: &'static str) -> HttpResponse {
    let mut response = Response::new(ResponseBody::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

pub(super) fn status(status: &Status) -> HttpResponse {
    let code = if status.is_failure() { status.code } else { 200 };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, ResponseBody::whole(status::encode(status)));
    if let Some(seconds) =
        status.details.as_ref().map(|details| details.retry_after_seconds).filter(|s| *s > 0)
    {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Answers that something was done that has no object to show.
pub(super) fn done(code: StatusCode) -> HttpResponse {
    let mut done = Status::success();
    done.metadata = Some(ListMeta::default());
    done.code = code.as_u16();
    json(code, ResponseBody::whole(status::encode(&done)))
}

pub(super) fn value(code: StatusCode, value: &Value) -> HttpResponse {
    json(code, ResponseBody::whole(value.to_string()))
}

/// Answers a path that leads nowhere, which a real server does in plain text.
pub(super) fn page_not_found() -> HttpResponse {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(super) fn object(code: StatusCode, object: &Object, mut shape: Shape, gzip: bool) -> HttpResponse {
    let mut buffer = BytesMut::new();
    shape.append(&mut buffer, object);
    let whole = buffer.freeze();
    if gzip && whole.len() > gzip::THRESHOLD {
        return compressed(code, gzip::one_stream(stream::iter([Ok(whole)])));
    }
    json(code, ResponseBody::whole(whole))
}

pub(super) fn watch(stream: BoxStream<'static, std::io::Result<Bytes>>, gzip: bool) -> HttpResponse {
    if gzip {
        return compressed(StatusCode::OK, gzip::member_by_member(stream));
    }
    json(StatusCode::OK, ResponseBody::streamed(stream))
}

/// Sends warnings along, which kubectl prints.
pub(super) fn with_warnings(mut response: HttpResponse, warnings: &[String]) -> HttpResponse {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

fn compressed(code: StatusCode, stream: BoxStream<'static, std::io::Result<Bytes>>) -> HttpResponse {
    let mut response = json(code, ResponseBody::streamed(stream));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

pub(crate) fn canned(canned: CannedResponse) -> HttpResponse {
    let mut response = Response::new(ResponseBody::whole(canned.body));
    *response.status_mut() = canned.code;
    *response.headers_mut() = canned.headers;
    response
}

pub(super) fn list(list: List, shape: Shape, gzip: bool) -> HttpResponse {
    let head = shape.list_head(&list_metadata(&list));
    let mut writer = ListWriter { shape, objects: list.objects.into_iter(), first: true, closed: false };
    let mut first = BytesMut::from(head.as_bytes());
    if writer.fill(&mut first) && first.len() <= gzip::THRESHOLD {
        return json(StatusCode::OK, ResponseBody::whole(first.freeze()));
    }
    let rest = stream::unfold(writer, |mut writer| async move {
        let mut piece = BytesMut::new();
        writer.fill(&mut piece);
        (!piece.is_empty()).then(|| (Ok(piece.freeze()), writer))
    });
    let pieces = stream::iter([Ok(first.freeze())]).chain(rest);
    if gzip {
        return compressed(StatusCode::OK, gzip::one_stream(pieces));
    }
    json(StatusCode::OK, ResponseBody::streamed(pieces.boxed()))
}

fn list_metadata(list: &List) -> Value {
    let mut metadata = json!({ "resourceVersion": list.resource_version.to_string() });
    if !list.continue_token.is_empty() {
        metadata["continue"] = list.continue_token.as_str().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    metadata
}

/// Writes the items of a list and what closes it.
struct ListWriter {
    shape: Shape,
    objects: std::vec::IntoIter<std::sync::Arc<Object>>,
    first: bool,
    closed: bool,
}

impl ListWriter {
    /// Fills one piece, and tells whether it was the last. Behind that there are only empty ones.
    fn fill(&mut self, buffer: &mut BytesMut) -> bool {
        if self.closed {
            return true;
        }
        for object in self.objects.by_ref() {
            if !std::mem::take(&mut self.first) {
                buffer.extend_from_slice(b",");
            }
            self.shape.append_item(buffer, &object);
            if buffer.len() >= PIECE {
                return false;
            }
        }
        buffer.extend_from_slice(b"]}\n");
        self.closed = true;
        true
    }
}
