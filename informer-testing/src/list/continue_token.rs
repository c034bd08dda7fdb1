//! The token with which a client asks for the next page.
//!
//! It is opaque to clients, but written as the real server writes it: unpadded URL-safe base64 over JSON.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::selector::Filter;
use crate::status::{self, Refusal};

const VERSION: &str = "meta.k8s.io/v1";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ContinueToken {
    v: String,
    /// The state of the first page, or -1 for the latest state.
    #[serde(rename = "rv")]
    pub(super) resource_version: i64,
    /// The key to start from, relative to the scope of the list.
    pub(super) start: String,
}

impl ContinueToken {
    /// Continues behind a storage key, in the state of the page before.
    pub(super) fn after(filter: &Filter, last_key: &str, resource_version: u64) -> Self {
        // A zero byte makes the smallest key that is greater than the last one.
        let start = format!("{}\0", relative(filter, last_key));
        let resource_version = i64::try_from(resource_version).unwrap_or(i64::MAX);
        Self { v: VERSION.to_owned(), resource_version, start }
    }

    /// Continues from a storage key, in whatever state is the latest then.
    pub(super) fn inconsistent(filter: &Filter, key: &str) -> Self {
        Self { v: VERSION.to_owned(), resource_version: -1, start: relative(filter, key).to_owned() }
    }

    pub(super) fn encode(&self) -> String {
        // The token holds two strings and a number, which JSON can always express.
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str) -> Result<Self, Refusal> {
        let invalid = |why: String| status::bad_request(format!("invalid continue token: {why}"));
        let json = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|error| invalid(error.to_string()))?;
        let token: Self = serde_json::from_slice(&json).map_err(|error| invalid(error.to_string()))?;
        match token.resource_version {
            0 => Err(invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned())),
            _ if token.v != VERSION => {
                Err(invalid(format!("server does not recognize this encoded version {:?}", token.v)))
            }
            _ if token.start.is_empty() => {
                Err(invalid("encoded start key empty (version meta.k8s.io/v1)".to_owned()))
            }
            _ => Ok(token),
        }
    }
}

fn relative<'a>(filter: &Filter, key: &'a str) -> &'a str {
    key.strip_prefix(filter.key_prefix().as_str()).unwrap_or(key)
}
