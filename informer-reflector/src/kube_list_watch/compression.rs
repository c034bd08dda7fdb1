//! [`Compression`]: whether the server is asked to compress, which depends on who else decompresses.
//!
//! The fact people get wrong: kube built with its feature `gzip` decompresses every response before we see it (unless
//! `Config::disable_compression` is set), and its decoder ends after the first member. Lists have one; compressed
//! watches have one for each flush. Nothing in a client says how it was built, so it is told from what comes back.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, VARY};

/// What to ask for, and what has been learned of who decompresses. Clones learn together.
#[derive(Debug, Clone)]
pub(super) struct Compression {
    wanted: bool,
    /// Something between us and the server decompresses too.
    is_taken: Arc<AtomicBool>,
}

impl Compression {
    pub(super) fn wanted() -> Self {
        Self { wanted: true, is_taken: Arc::default() }
    }

    pub(super) fn unwanted() -> Self {
        Self { wanted: false, is_taken: Arc::default() }
    }

    /// The encoding to accept for a list, which is one member: whoever decompresses it does it well.
    pub(super) fn of_lists(&self) -> HeaderValue {
        HeaderValue::from_static(if self.wanted { "gzip" } else { "identity" })
    }

    /// The encoding to accept for a watch.
    pub(super) fn of_watches(&self) -> HeaderValue {
        let accepted = self.wanted && !self.is_taken.load(Ordering::Relaxed);
        HeaderValue::from_static(if accepted { "gzip" } else { "identity" })
    }

    /// Learns from the answer to a request with these headers. Returns whether its body can't be trusted: the server
    /// chose an encoding, which it says with `Vary`, and somebody has taken that off.
    pub(super) fn learn_from_answer(&self, asked: &HeaderMap, answer: &HeaderMap) -> bool {
        let may_be_compressed = asked.get(ACCEPT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let is_taken =
            may_be_compressed && !answer.contains_key(CONTENT_ENCODING) && varies_by_encoding(answer);
        self.is_taken.fetch_or(is_taken, Ordering::Relaxed);
        is_taken
    }

    /// Learns from a body that failed: a decoder between us and a server that doesn't say `Vary` complains of what
    /// follows the first member.
    pub(super) fn learn_from_failure(&self, error: &(dyn Error + 'static)) {
        if error.to_string().contains("decompress") {
            self.is_taken.store(true, Ordering::Relaxed);
        }
    }
}

fn varies_by_encoding(headers: &HeaderMap) -> bool {
    let fields = headers.get_all(VARY).iter().filter_map(|value| value.to_str().ok());
    fields
        .flat_map(|value| value.split(','))
        .any(|field| field.trim().eq_ignore_ascii_case("accept-encoding"))
}
