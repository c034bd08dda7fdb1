//! The bearer tokens that the server accepts. By default, every request is accepted, with any token
//! or without one.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;

use super::request::header;

#[derive(Debug, Default)]
pub(crate) struct Credentials(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    accepted: Accepted,
    /// The number of active faults that [`Credentials::expire`] began. While it is not zero, the
    /// server rejects every request, also without a token.
    expirations: usize,
}

#[derive(Debug, Default)]
enum Accepted {
    #[default]
    All,
    Token(String),
    None,
}

impl Credentials {
    pub(crate) fn accept_all(&self) {
        self.0.lock().accepted = Accepted::All;
    }

    pub(crate) fn reject_all(&self) {
        self.0.lock().accepted = Accepted::None;
    }

    pub(crate) fn accept_token(&self, token: &str) {
        self.0.lock().accepted = Accepted::Token(token.to_owned());
    }

    /// Begins a fault: the server rejects every request, with any token or without one, until
    /// [`renew`](Self::renew) ends the fault.
    pub(crate) fn expire(&self) {
        self.0.lock().expirations += 1;
    }

    /// Ends one fault that [`expire`](Self::expire) began. If another such fault is active, the
    /// server still rejects all requests.
    pub(crate) fn renew(&self) {
        let mut state = self.0.lock();
        state.expirations = state.expirations.saturating_sub(1);
    }

    pub(crate) fn accept(&self, headers: &HeaderMap) -> bool {
        let state = self.0.lock();
        match &state.accepted {
            _ if state.expirations > 0 => false,
            Accepted::All => true,
            Accepted::None => false,
            Accepted::Token(wanted) => header(headers, AUTHORIZATION).strip_prefix("Bearer ") == Some(wanted),
        }
    }
}
