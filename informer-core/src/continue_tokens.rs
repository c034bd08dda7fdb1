//! [`ContinueTokens`]: the continue tokens that a list has given, none of which may come twice.
//!
//! client-go's pager (tools/pager) follows whatever it is given. The fact people get wrong: the pages of a list are not in
//! an order by which one could see that they go round; servers that extend the API need not keep to any.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::ListWatchError;

/// The continue tokens that a list has given so far, for whoever follows its pages.
///
/// The same token asks for the same page of the same state, with the same token at its end: a list that gives one twice
/// would go round for ever.
#[derive(Debug, Clone, Default)]
pub struct ContinueTokens {
    /// Tokens may be long, and a list may have thousands of pages, so it's hashes; that two of one list are alike by
    /// chance is not to be expected before the end of the world.
    given: HashSet<u64>,
}

impl ContinueTokens {
    /// Returns those of a list that has given none yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes down the token at the end of a page, before it is followed.
    ///
    /// # Errors
    /// [`ListWatchError::Protocol`] if the list has given it before.
    pub fn note(&mut self, token: &str) -> Result<(), ListWatchError> {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        if self.given.insert(hasher.finish()) {
            return Ok(());
        }
        Err(ListWatchError::Protocol(
            "the server has given the same continue token twice in one list, which would go round for ever; whatever \
             serves this resource has to be mended"
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
            tokens.note(&format!("page {page}")).expect("it is new");
        }
        let error = tokens.note("page 3").expect_err("it has been given");
        assert!(matches!(error, ListWatchError::Protocol(_)), "{error}");
    }
}
