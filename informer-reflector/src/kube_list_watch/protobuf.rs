//! [`Protobuf`]: decides whether to request protobuf.
//!
//! Servers support protobuf for built-in kinds, and for the metadata of any kind. Protobuf needs a
//! fraction of the CPU time of JSON, on the server and on the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use informer_core::ListWatchError;

use crate::decode::{Encoding, ExpectedType};

/// Whether protobuf is requested. Clones share this state.
#[derive(Debug, Clone)]
pub(super) struct Protobuf {
    /// Whether the requested objects have a known protobuf message.
    is_known: bool,
    /// Whether the server has refused protobuf, or a protobuf body had unexpected content.
    is_disabled: Arc<AtomicBool>,
}

impl Protobuf {
    pub(super) fn new(expected: &ExpectedType) -> Self {
        Self { is_known: expected.has_message(), is_disabled: Arc::default() }
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_known && !self.is_disabled.load(Ordering::Relaxed)
    }

    /// Returns whether `error` is the server's refusal of protobuf, and if so, disables protobuf. A
    /// second refusal also returns `true`.
    pub(super) fn observe_refusal(&self, error: &ListWatchError) -> bool {
        // 406 is Not Acceptable, and 415 is Unsupported Media Type.
        let is_refused = error.status().is_some_and(|status| matches!(status.code, 406 | 415));
        self.is_disabled.fetch_or(is_refused, Ordering::Relaxed);
        is_refused
    }

    /// Disables protobuf if a protobuf body had unexpected content, for example fields that would
    /// be lost because [`kube_messages`] does not describe them.
    pub(super) fn observe_failure(&self, encoding: Encoding, error: &ListWatchError) {
        let is_unreadable = encoding == Encoding::Protobuf && matches!(error, ListWatchError::Protocol(_));
        self.is_disabled.fetch_or(is_unreadable, Ordering::Relaxed);
    }
}
