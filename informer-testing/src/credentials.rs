//! Whose requests are taken: by default everybody's, or only those with a certain bearer token.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;

/// What a request needs to be taken.
#[derive(Debug, Default)]
pub(crate) struct Credentials(Mutex<Accepted>);

#[derive(Debug, Default)]
enum Accepted {
    #[default]
    Everybody,
    Token(String),
    Nobody,
}

impl Credentials {
    pub(crate) fn accept_everybody(&self) {
        *self.0.lock() = Accepted::Everybody;
    }

    pub(crate) fn accept_nobody(&self) {
        *self.0.lock() = Accepted::Nobody;
    }

    pub(crate) fn accept_token(&self, token: &str) {
        *self.0.lock() = Accepted::Token(token.to_owned());
    }

    /// Says whether a request with these headers is taken.
    pub(crate) fn accept(&self, headers: &HeaderMap) -> bool {
        match &*self.0.lock() {
            Accepted::Everybody => true,
            Accepted::Nobody => false,
            Accepted::Token(wanted) => {
                let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
                given.and_then(|given| given.strip_prefix("Bearer ")) == Some(wanted)
            }
        }
    }
}
