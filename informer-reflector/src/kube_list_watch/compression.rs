//! [`Compression`]: decides whether to request compression.
//!
//! Note: with kube's feature `gzip`, the client decompresses every response itself (unless
//! `Config::disable_compression` is set), and stops after the first gzip member. Lists have one
//! member; compressed watches have one for each flush. A client does not show its features, so they
//! are inferred from responses.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

/// The encodings to request, and the observations of responses, which clones share.
#[derive(Debug, Clone)]
pub(super) struct Compression {
    wanted: bool,
    /// Whether the client or a proxy decompresses.
    transport_decompresses: Arc<AtomicBool>,
}

impl Compression {
    pub(super) fn wanted() -> Self {
        Self { wanted: true, transport_decompresses: Arc::default() }
    }

    pub(super) fn unwanted() -> Self {
        Self { wanted: false, transport_decompresses: Arc::default() }
    }

    /// Returns the encoding to accept for a list. It has one member, which every decoder supports.
    pub(super) fn of_lists(&self) -> HeaderValue {
        HeaderValue::from_static(if self.wanted { "gzip" } else { "identity" })
    }

    /// Returns the encoding to accept for a watch.
    pub(super) fn of_watches(&self) -> HeaderValue {
        let accepted = self.wanted && !self.transport_decompresses.load(Ordering::Relaxed);
        HeaderValue::from_static(if accepted { "gzip" } else { "identity" })
    }

    /// Evaluates the response to a request that accepts these encodings. Returns whether its body can be cut
    /// off: `Vary` shows that the server chose an encoding, and the encoding has been removed.
    pub(super) fn observe_response(&self, asked: &HeaderValue, answer: &HeaderMap) -> bool {
        let may_be_compressed = asked == "gzip";
        let transport_decompresses =
            may_be_compressed && !answer.contains_key(CONTENT_ENCODING) && varies_by_encoding(answer);
        self.transport_decompresses.fetch_or(transport_decompresses, Ordering::Relaxed);
        transport_decompresses
    }

    /// Evaluates a failed body. Without `Vary`, a decoder in the transport fails after the first
    /// member.
    pub(super) fn observe_failure(&self, error: &(dyn Error + 'static)) {
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
