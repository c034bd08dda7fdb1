//! [`ContinueTokens`]: detects a paged list that would never end, because its pages form a cycle.
//!
//! client-go's pager (tools/pager) does not check for repeated tokens. Note: the order of objects
//! cannot reveal a cycle, because extension API servers can return objects in any order.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ListWatchError;

/// The continue tokens that a list has returned so far.
///
/// Two requests with the same token return the same page and the same next token. So a list that
/// returns a token twice never ends.
#[derive(Debug, Clone, Default)]
pub struct ContinueTokens {
    /// The hashes of the tokens, which need less memory than the tokens. The risk that two 64-bit
    /// hashes collide is negligible.
    given: HashSet<u64>,
}

impl ContinueTokens {
    /// Returns a set without tokens, for a list whose first page has not been requested yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the continue token that the server returned at the end of a page.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if the list has returned this token before.
    pub fn note(&mut self, token: &str) -> Result<(), ListWatchError> {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        if self.given.insert(hasher.finish()) {
            return Ok(());
        }
        Err(ListWatchError::Protocol(
            "the server returned the same continue token twice in one list, so the list would never end; fix the API \
             server that serves this resource"
                .into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_continue_token_is_an_error() {
        let mut tokens = ContinueTokens::new();
        for page in 0..2_000 {
            tokens.note(&format!("page {page}")).expect("a new token");
        }
        let error = tokens.note("page 3").expect_err("a repeated token");
        assert!(matches!(error, ListWatchError::Protocol(_)), "{error}");
    }
}
