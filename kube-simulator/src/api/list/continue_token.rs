//! [`ContinueToken`]: the token with which a client requests the next page of a list.
//!
//! The token is opaque to clients, but has the real server's format: unpadded URL-safe base64 over
//! JSON.

use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};

use crate::api::selector::Filter;
use crate::api::status::{self, Refusal};

const VERSION: &str = "meta.k8s.io/v1";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ContinueToken {
    v: String,
    /// The resource version of the previous page, or -1 for the latest state.
    #[serde(rename = "rv")]
    pub(super) resource_version: i64,
    /// The storage key at which the next page starts. In a list of all namespaces, this is
    /// `shop/apple`; in a list of the namespace `shop`, it is `apple`. A slash precedes the key if
    /// the watch cache serves the list.
    start: String,
}

impl ContinueToken {
    /// Creates the token for the page after `last_key`, with the objects at `resource_version`.
    /// `cached` is true if the list is read from the watch cache.
    pub(super) fn after(cached: bool, filter: &Filter, last_key: &str, resource_version: u64) -> Self {
        // Appending a zero byte gives the smallest key that is greater than the last key.
        let start = format!("{}\0", relative(cached, filter, last_key));
        let resource_version = i64::try_from(resource_version).unwrap_or(i64::MAX);
        Self { v: VERSION.to_owned(), resource_version, start }
    }

    /// Creates the token for a page that begins at `key`, with the latest objects. The list is then
    /// inconsistent, because its earlier pages contain older objects.
    pub(super) fn inconsistent(cached: bool, filter: &Filter, key: &str) -> Self {
        Self { v: VERSION.to_owned(), resource_version: -1, start: relative(cached, filter, key) }
    }

    pub(super) fn encode(&self) -> String {
        // Cannot fail: JSON can express two strings and a number.
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str) -> Result<Self, Refusal> {
        let invalid = |why: String| {
            status::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let json = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|error| {
            invalid(format!("illegal base64 data at input byte {}", offset(text, &error)))
        })?;
        let token: Self = serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))?;
        if token.v != VERSION {
            return Err(invalid(format!("server does not recognize this encoded version {}", token.v)));
        }
        if token.resource_version == 0 {
            return Err(invalid(format!("incorrect encoded start resourceVersion (version {VERSION})")));
        }
        if token.start.is_empty() {
            return Err(invalid(format!("encoded start key empty (version {VERSION})")));
        }
        // A start key must stay within the scope of the list.
        let leaves_scope = |step: &str| matches!(step, "" | "." | "..");
        if token.start().split('/').any(leaves_scope) {
            return Err(invalid(token.start));
        }
        Ok(token)
    }

    /// Returns the key at which the next page starts: the field `start` without a leading slash.
    pub(super) fn start(&self) -> &str {
        self.start.strip_prefix('/').unwrap_or(&self.start)
    }
}

/// Converts a storage key to the text in a token's field `start`. For example, `shop/apple` becomes
/// `apple`, or `/apple` if `cached`, in a list of the namespace `shop`.
fn relative(cached: bool, filter: &Filter, key: &str) -> String {
    let relative = key.strip_prefix(filter.key_prefix().as_str()).unwrap_or(key);
    // If the watch cache serves the list, a slash precedes the key.
    if cached { format!("/{relative}") } else { relative.to_owned() }
}

/// Returns the offset of the first invalid base64 byte, or the length of a text whose end is
/// invalid.
fn offset(text: &str, error: &DecodeError) -> usize {
    match error {
        DecodeError::InvalidByte(offset, _) => *offset,
        _ => text.find('=').unwrap_or(text.len()),
    }
}
