//! [`send`]: sends a request and returns a successful response or the error.
//!
//! Note: not every error response is a `Status`. The server's overload protection returns 429 in
//! plain text, and proxies return HTML.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER};
use http::{Response, StatusCode};
use informer_core::ListWatchError;
use kube::Client;
use kube::client::Body;
use kube::core::Status;

use super::slices::Slices;
use crate::decode::{Encoding, status_in};

/// The maximum number of bytes to keep of an error's body. A `Status` with many causes is shorter.
const MAX_ERROR_BODY: usize = 256 * 1024;

/// The maximum length of a header's value in an error message, in bytes.
const MAX_QUOTE: usize = 256;

/// The maximum wait that a server can request, in seconds. It also prevents overflow when a wait is
/// added to a time.
const MAX_RETRY_AFTER: u64 = 60 * 60;

pub(super) async fn send(
    client: &Client,
    request: http::Request<Body>,
) -> Result<Response<Body>, ListWatchError> {
    let unreachable = |error| ListWatchError::Unreachable(Box::new(Caused(error)));
    let response = client.send(request).await.map_err(unreachable)?;
    if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
}

/// Turns an unsuccessful response into an error.
async fn refusal(response: Response<Body>) -> ListWatchError {
    let head = response.headers().clone();
    let code = response.status();
    let body = match Slices::new(response) {
        Ok(slices) => read_start(slices).await,
        // The body can't be decoded.
        Err(_) => Vec::new(),
    };
    let encoding = encoding_of(&head);
    let mut status = status_in(encoding, &body).unwrap_or_else(|| status_for(code, &head, &body));
    if status.code == 0 {
        status.code = code.as_u16();
    }
    let in_header = head.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let in_body = status.details.as_ref().map(|details| u64::from(details.retry_after_seconds));
    let seconds = in_header.or(in_body.filter(|seconds| *seconds > 0));
    let retry_after = seconds.map(|seconds: u64| Duration::from_secs(seconds.min(MAX_RETRY_AFTER)));
    ListWatchError::Status { status: Box::new(status), retry_after }
}

/// Returns at most the first [`MAX_ERROR_BODY`] bytes of a body.
async fn read_start(mut slices: Slices) -> Vec<u8> {
    let mut start = Vec::new();
    while let Ok(Some(bytes)) = slices.next().await {
        start.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BODY - start.len())]);
        if start.len() == MAX_ERROR_BODY {
            break;
        }
    }
    start
}

/// Creates a `Status` for an error response without one, with Kubernetes' reason for its code.
fn status_for(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Status {
    let reason = match code.as_u16() {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "Unknown",
    };
    let content_type = header(headers, &CONTENT_TYPE).unwrap_or_else(|| "no content type".to_owned());
    // The body is not quoted, because it can contain anything, even Secrets.
    let message =
        format!("HTTP {code}, without a Status (content type {content_type}, {} bytes)", body.len());
    Status::failure(&message, reason).with_code(code.as_u16())
}

/// Returns the encoding of a body, from its content type. Default: JSON.
pub(super) fn encoding_of(headers: &HeaderMap) -> Encoding {
    headers.get(CONTENT_TYPE).map_or(Encoding::Json, |value| Encoding::of(value.as_bytes()))
}

/// Describes content type and encoding of a response, for an error about its body.
pub(super) fn describe_headers(headers: &HeaderMap) -> String {
    let content_type = header(headers, &CONTENT_TYPE).unwrap_or_else(|| "none".to_owned());
    match header(headers, &CONTENT_ENCODING) {
        Some(encoding) => format!("content type {content_type}, encoding {encoding}"),
        None => format!("content type {content_type}"),
    }
}

fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| quote(value.as_bytes()))
}

/// Returns a header's value as one line of limited length, without control characters.
fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(2 * MAX_QUOTE)]);
    let words = text.split(|char: char| char.is_control() || char.is_whitespace());
    let mut line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.len() > MAX_QUOTE {
        let end = (0..=MAX_QUOTE).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
        line.push_str("...");
    }
    line
}

/// An error whose message includes the messages of its causes.
#[derive(Debug)]
pub(super) struct Caused(pub(super) kube::Error);

impl fmt::Display for Caused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // kube's message for a transport error only adds the prefix `ServiceError: `.
        let first: &dyn Error = match &self.0 {
            kube::Error::Service(cause) => cause.as_ref(),
            error => error,
        };
        let mut last = first.to_string();
        f.write_str(&last)?;
        let mut source = first.source();
        while let Some(cause) = source {
            let message = cause.to_string();
            // Many messages already contain the message of their cause.
            if !last.contains(&message) {
                write!(f, ": {message}")?;
            }
            last = message;
            source = cause.source();
        }
        Ok(())
    }
}

impl Error for Caused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
