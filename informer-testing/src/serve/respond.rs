//! Building responses.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use kube::core::Status;
use serde_json::json;

use super::body::ResponseBody;
use crate::fault::CannedResponse;
use crate::list::List;
use crate::object::Object;
use crate::resource::ResourceKind;
use crate::status;
use crate::watch::Shape;

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

pub(super) fn object(code: StatusCode, object: &Object, shape: Shape) -> HttpResponse {
    let body = match shape {
        Shape::Full => object.json().clone(),
        Shape::Metadata => {
            let mut buffer = BytesMut::new();
            shape.append(&mut buffer, object);
            buffer.freeze()
        }
    };
    json(code, ResponseBody::whole(body))
}

pub(super) fn watch(stream: BoxStream<'static, std::io::Result<Bytes>>) -> HttpResponse {
    json(StatusCode::OK, ResponseBody::streamed(stream))
}

pub(crate) fn canned(canned: CannedResponse) -> HttpResponse {
    let mut response = Response::new(ResponseBody::whole(canned.body));
    *response.status_mut() = canned.code;
    *response.headers_mut() = canned.headers;
    response
}

pub(super) fn list(kind: &ResourceKind, list: List, shape: Shape) -> HttpResponse {
    let head = list_head(kind, &list, shape);
    let mut writer = ListWriter { kind: kind.clone(), shape, objects: list.objects.into_iter(), first: true };
    let mut first = BytesMut::from(head.as_bytes());
    if writer.fill(&mut first) {
        return json(StatusCode::OK, ResponseBody::whole(first.freeze()));
    }
    let rest = stream::unfold(Some(writer), |writer| async move {
        let mut writer = writer?;
        let mut piece = BytesMut::new();
        let done = writer.fill(&mut piece);
        Some((Ok(piece.freeze()), (!done).then_some(writer)))
    });
    json(StatusCode::OK, ResponseBody::streamed(stream::iter([Ok(first.freeze())]).chain(rest).boxed()))
}

/// Gives a list's JSON up to the opening bracket of its items.
fn list_head(kind: &ResourceKind, list: &List, shape: Shape) -> String {
    let (list_kind, api_version) = match shape {
        Shape::Full => (format!("{}List", kind.kind), kind.api_version()),
        Shape::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
    };
    let mut metadata = json!({ "resourceVersion": list.resource_version.to_string() });
    if !list.continue_token.is_empty() {
        metadata["continue"] = list.continue_token.as_str().into();
    }
    if let Some(remaining) = list.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    format!(r#"{{"kind":"{list_kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#)
}

/// Writes the items of a list and what closes it.
struct ListWriter {
    kind: ResourceKind,
    shape: Shape,
    objects: std::vec::IntoIter<std::sync::Arc<Object>>,
    first: bool,
}

impl ListWriter {
    /// Fills one piece, and tells whether it was the last.
    fn fill(&mut self, buffer: &mut BytesMut) -> bool {
        for object in self.objects.by_ref() {
            if !std::mem::take(&mut self.first) {
                buffer.extend_from_slice(b",");
            }
            self.shape.append_item(buffer, &self.kind, &object);
            if buffer.len() >= PIECE {
                return false;
            }
        }
        buffer.extend_from_slice(b"]}\n");
        true
    }
}
