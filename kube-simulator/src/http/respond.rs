//! Builds responses.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING,
};
use http::{Response, StatusCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::core::Status;
use serde_json::{Value, json};

use super::body::ResponseBody;
use super::gzip;
use crate::api::list::List;
use crate::fault::{CannedResponse, flow_control};
use crate::http::encoding::Encoding;
use crate::http::shape::Shape;
use crate::storage::Object;

pub(super) type HttpResponse = Response<ResponseBody>;

/// A response extension that marks the body as watch events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Events {
    /// Whether a WebSocket sends the events as text messages.
    #[cfg_attr(not(feature = "websocket"), expect(dead_code))]
    pub(super) text: bool,
}

/// Approximate size, in bytes, of the pieces in which a JSON list is encoded. Encoding in pieces
/// saves memory.
const PIECE: usize = 128 * 1024;

pub(super) fn typed(code: StatusCode, media_type: &'static str, body: ResponseBody) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

pub(super) fn whole(
    code: StatusCode,
    encoding: Encoding,
    body: impl Into<Bytes>,
    gzip: bool,
) -> HttpResponse {
    let body = body.into();
    if gzip && body.len() > gzip::THRESHOLD {
        return compressed(code, encoding.media_type(), gzip::one_stream(stream::iter([Ok(body)])));
    }
    typed(code, encoding.media_type(), ResponseBody::whole(body))
}

pub(super) fn text(code: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    let mut response = Response::new(ResponseBody::whole(text));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

pub(super) fn status(status: &Status, encoding: Encoding) -> HttpResponse {
    let code = if status.is_failure() { status.code } else { 200 };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = whole(code, encoding, encoding.status(status), false);
    if let Some(seconds) =
        status.details.as_ref().map(|details| details.retry_after_seconds).filter(|s| *s > 0)
    {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns the `Success` status of an operation without a result object.
pub(super) fn done(code: StatusCode, encoding: Encoding) -> HttpResponse {
    let mut done = Status::success();
    done.metadata = Some(ListMeta::default());
    done.code = code.as_u16();
    whole(code, encoding, encoding.status(&done), false)
}

pub(super) fn value(code: StatusCode, encoding: Encoding, value: &Value) -> HttpResponse {
    whole(code, encoding, encoding.document(value.to_string().into_bytes()).into_owned(), false)
}

/// Adds the headers of API priority and fairness, as a real server does for accepted requests.
pub(super) fn classified(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().extend(flow_control());
    response
}

pub(super) fn page_not_found() -> HttpResponse {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

pub(super) fn object(code: StatusCode, object: &Object, mut shape: Shape, gzip: bool) -> HttpResponse {
    whole(code, shape.encoding(), shape.document(object), gzip)
}

pub(super) fn watch(
    stream: BoxStream<'static, std::io::Result<Bytes>>,
    encoding: Encoding,
    gzip: bool,
) -> HttpResponse {
    let media_type = encoding.stream_media_type().unwrap_or_default();
    let mut response = if gzip {
        compressed(StatusCode::OK, media_type, gzip::member_by_member(stream))
    } else {
        typed(StatusCode::OK, media_type, ResponseBody::streamed(stream))
    };
    response.extensions_mut().insert(Events { text: encoding.is_text() });
    response
}

/// If the warnings of a response have more characters than this in total, long warnings are
/// shortened to [`MAX_SHORTENED`]. When the shortened warnings reach this total too, the remaining
/// warnings are dropped.
const MAX_WARNINGS: usize = 4 * 1024;

/// Maximum length of a shortened warning, in characters.
const MAX_SHORTENED: usize = 256;

/// Adds the header that closes an HTTP/1.1 connection after the response.
pub(super) fn closing(mut response: HttpResponse) -> HttpResponse {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Adds warning headers, which kubectl prints. If the warnings are too long in total, they are
/// shortened or dropped, as in the real server's `WithWarningRecorder`.
pub(super) fn with_warnings(mut response: HttpResponse, warnings: &[String]) -> HttpResponse {
    let all: usize = warnings.iter().map(|warning| warning.chars().count()).sum();
    let longest = if all > MAX_WARNINGS { MAX_SHORTENED } else { MAX_WARNINGS };
    let mut written = 0;
    for warning in warnings {
        if written >= MAX_WARNINGS {
            break;
        }
        let warning: String = warning.chars().take(longest).collect();
        written += warning.chars().count();
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
    response
}

fn compressed(
    code: StatusCode,
    media_type: &'static str,
    stream: BoxStream<'static, std::io::Result<Bytes>>,
) -> HttpResponse {
    let mut response = typed(code, media_type, ResponseBody::streamed(stream));
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
    let encoding = shape.encoding();
    // Some other encodings begin with the length of the list, so they need the whole list.
    if encoding != Encoding::Json {
        return whole(StatusCode::OK, encoding, shape.list(&list_metadata(&list), &list.objects), gzip);
    }
    let head = shape.list_head(&list_metadata(&list));
    let mut writer = ListWriter { shape, objects: list.objects.into_iter(), first: true };
    let mut first = BytesMut::from(head.as_bytes());
    let is_complete = writer.fill(&mut first);
    if is_complete && first.len() <= gzip::THRESHOLD {
        return whole(StatusCode::OK, encoding, first.freeze(), false);
    }
    let rest = stream::unfold((!is_complete).then_some(writer), |writer| async move {
        let mut writer = writer?;
        let mut piece = BytesMut::new();
        let is_complete = writer.fill(&mut piece);
        Some((Ok(piece.freeze()), (!is_complete).then_some(writer)))
    });
    let pieces = stream::iter([Ok(first.freeze())]).chain(rest);
    if gzip {
        return compressed(StatusCode::OK, encoding.media_type(), gzip::one_stream(pieces));
    }
    typed(StatusCode::OK, encoding.media_type(), ResponseBody::streamed(pieces.boxed()))
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

/// Writes the items and the end of a JSON list, piece by piece.
struct ListWriter {
    shape: Shape,
    objects: std::vec::IntoIter<std::sync::Arc<Object>>,
    first: bool,
}

impl ListWriter {
    /// Appends the next piece of the list to the buffer. Returns `true` if this piece is the last
    /// one.
    fn fill(&mut self, buffer: &mut BytesMut) -> bool {
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
        true
    }
}
