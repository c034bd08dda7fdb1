//! [`Compression`]: decides whether to request compression.
//!
//! Note: with kube's feature `gzip`, the client decompresses every response itself (unless
//! `Config::disable_compression` is set), and stops after the first gzip member. Lists have one
//! member; compressed watches have one for each flush. The features of a client are not visible, so
//! this type infers them from responses.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

/// Two facts that decide whether a request accepts gzip: whether the user wants gzip, and whether
/// the client or a proxy decompresses responses. Clones share the second fact.
#[derive(Debug, Clone)]
pub(super) struct Compression {
    /// Whether the user wants compressed responses. If not, no request accepts gzip.
    wanted: bool,
    /// Whether the client or a proxy seems to have decompressed a watch, or the client failed to do
    /// so. If `true`, watches are requested without gzip.
    transport_decompresses: Arc<AtomicBool>,
}

impl Compression {
    pub(super) fn wanted() -> Self {
        Self { wanted: true, transport_decompresses: Arc::default() }
    }

    pub(super) fn unwanted() -> Self {
        Self { wanted: false, transport_decompresses: Arc::default() }
    }

    /// Returns the header `Accept-Encoding` of list requests.
    pub(super) fn of_lists(&self) -> HeaderValue {
        HeaderValue::from_static(if self.wanted { "gzip" } else { "identity" })
    }

    /// Returns the header `Accept-Encoding` of watch requests.
    pub(super) fn of_watches(&self) -> HeaderValue {
        let accepted = self.wanted && !self.transport_decompresses.load(Ordering::Relaxed);
        HeaderValue::from_static(if accepted { "gzip" } else { "identity" })
    }

    /// Returns whether the client or a proxy seems to have decompressed this response. If so, later
    /// watches are requested without gzip.
    ///
    /// `accept_encoding` is the header of the request.
    pub(super) fn observe_response(&self, accept_encoding: &HeaderValue, response: &HeaderMap) -> bool {
        let may_be_compressed = accept_encoding == "gzip";
        // The decompression removes the header `Content-Encoding`, but keeps `Vary`.
        let transport_decompresses =
            may_be_compressed && !response.contains_key(CONTENT_ENCODING) && varies_by_encoding(response);
        self.transport_decompresses.fetch_or(transport_decompresses, Ordering::Relaxed);
        transport_decompresses
    }

    /// Disables the compression of later watches if `error` shows that the client failed to
    /// decompress a watch.
    pub(super) fn observe_failure(&self, error: &(dyn Error + 'static)) {
        // A client that decompresses a watch fails, or ends the body, after its first gzip member.
        // `observe_response` recognizes such a client earlier, but only if the response has the
        // header `Vary`.
        if error.to_string().contains("decompress") {
            self.transport_decompresses.store(true, Ordering::Relaxed);
        }
    }
}

fn varies_by_encoding(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    fields
        .flat_map(|value| value.split(','))
        .any(|field| field.trim().eq_ignore_ascii_case("accept-encoding"))
}
