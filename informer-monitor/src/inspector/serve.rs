//! Serves the inspector, and decides who may read it.
//!
//! A web page of another site must not read the inspector through its visitor's browser. Without a
//! token, the `Host` header must therefore name this machine, which stops DNS rebinding. With a
//! token, other sites have neither the token nor the cookie that contains it.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;

use super::{Inspector, Shown, api};

/// The maximum number of connections to a Unix socket that are not accepted yet.
#[cfg(unix)]
const BACKLOG: u32 = 1024;
/// The minimum length of a token in bytes.
const MIN_TOKEN: usize = 16;
const COOKIE_NAME: &str = "informer-inspector";
/// The value of the header `Content-Security-Policy`: the page loads nothing from other hosts, and
/// no other page can embed it.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (ALLOW, "GET"),
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The reason why an inspector is not served.
#[derive(Debug)]
#[non_exhaustive]
pub enum InspectorError {
    /// The inspector has no token, and its address is unknown or not a loopback address, so other
    /// machines could read the page.
    TokenRequired {
        /// The address of the listener. `None` if [`Inspector::into_router`] was called: the
        /// program can serve a router on any address.
        address: Option<SocketAddr>,
    },
    /// The token is shorter than 16 characters, or has other characters than ASCII letters, digits,
    /// `-`, `_`, `.` and `~`.
    InvalidToken,
    /// The listener's address could not be read, or the Unix socket could not be set up.
    Io(io::Error),
}

impl fmt::Display for InspectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenRequired { address: Some(address) } => {
                write!(f, "{address} is not a loopback address: set a token with Inspector::token")
            }
            Self::TokenRequired { address: None } => {
                f.write_str(
                    "the inspector's router needs a token, because the router can be served on any address: set a token with \
                     Inspector::token",
                )
            }
            Self::InvalidToken => {
                write!(
                    f,
                    "invalid token: expected at least {MIN_TOKEN} letters, digits, '-', '_', '.' or '~'"
                )
            }
            Self::Io(error) => write!(f, "cannot serve the inspector: {error}"),
        }
    }
}

impl std::error::Error for InspectorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for InspectorError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Inspector {
    /// Serves the inspector's web page, at `/inspect/` and by redirection at `/`, until this future
    /// is dropped. Never returns `Ok`.
    ///
    /// # Errors
    /// [`InspectorError::TokenRequired`] if the listener's address is not a loopback address and
    /// there is no [token](Self::token); [`InspectorError::InvalidToken`] if the token is invalid;
    /// [`InspectorError::Io`] if the listener's address can't be read. Errors of connections do not
    /// end this future.
    ///
    /// # Cancel safety
    /// After the future is dropped, no more connections are accepted. Open connections are closed
    /// after the response to their current request.
    pub async fn serve(self, listener: TcpListener) -> Result<(), InspectorError> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() && self.shown.token.is_none() {
            return Err(InspectorError::TokenRequired { address: Some(address) });
        }
        axum::serve(listener, self.standalone_router()?).await?;
        Ok(())
    }

    /// Serves the inspector's web page on a Unix socket that only the user of this process can
    /// connect to. A socket at `path` that no process listens on is replaced.
    /// `ssh -L 8080:PATH HOST` makes the page available to a browser on another machine.
    ///
    /// # Errors
    /// [`InspectorError::Io`] if the path exists and is not a socket, or a process listens on it,
    /// or this process may not connect to it; [`InspectorError::InvalidToken`] if the token is
    /// invalid.
    ///
    /// # Cancel safety
    /// After the future is dropped, no more connections are accepted. Open connections are closed
    /// after the response to their current request. The file of the socket is not removed.
    #[cfg(unix)]
    pub async fn serve_unix(self, path: impl AsRef<std::path::Path>) -> Result<(), InspectorError> {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        let path = path.as_ref();
        let router = self.standalone_router()?;
        let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
        // Other errors, such as a lack of permission, do not show that no process listens. Without
        // the removal, `bind` fails.
        let is_refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(is_refused) {
            std::fs::remove_file(path)?;
        }
        let socket = tokio::net::UnixSocket::new_stream()?;
        socket.bind(path)?;
        // No process can connect before `listen`.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        axum::serve(socket.listen(BACKLOG)?, router).await?;
        Ok(())
    }

    /// Returns a router with the page at `/inspect/`, to be merged into a router with other paths,
    /// such as that of [`router`](crate::router).
    ///
    /// ```
    /// # fn routes(
    /// #     factory: &informer_factory::SharedInformerFactory,
    /// #     token: String,
    /// # ) -> Result<axum::Router, informer_monitor::InspectorError> {
    /// use informer_monitor::{Inspector, router};
    ///
    /// let inspector = Inspector::new(factory).token(token).into_router()?;
    /// Ok(router(factory, Default::default()).merge(inspector))
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InspectorError::TokenRequired`] without a [token](Self::token), because the inspector can't
    /// see on which address the router is served; [`InspectorError::InvalidToken`] if the token is
    /// invalid.
    pub fn into_router(self) -> Result<Router, InspectorError> {
        if self.shown.token.is_none() {
            return Err(InspectorError::TokenRequired { address: None });
        }
        let shown = self.checked()?;
        Ok(api::routes().route_layer(from_fn_with_state(Arc::clone(&shown), guard)).with_state(shown))
    }

    /// Returns a router that serves only the inspector, and redirects `/` to the page.
    fn standalone_router(self) -> Result<Router, InspectorError> {
        let shown = self.checked()?;
        let routes = api::routes().route("/", api::redirect());
        Ok(routes.layer(from_fn_with_state(Arc::clone(&shown), guard)).with_state(shown))
    }

    fn checked(self) -> Result<Arc<Shown>, InspectorError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let is_valid = |token: &String| token.len() >= MIN_TOKEN && token.bytes().all(is_allowed);
        if self.shown.token.as_ref().is_some_and(|token| !is_valid(token)) {
            return Err(InspectorError::InvalidToken);
        }
        Ok(Arc::new(self.shown))
    }
}

/// Refuses requests other than GET, and requests that may not read the inspector. Sets the same
/// headers ([`HEADERS`], such as `Content-Security-Policy`) on every response.
async fn guard(State(shown): State<Arc<Shown>>, request: Request, next: Next) -> Response {
    let mut response = match access(&shown, &request) {
        Ok(cookie) => {
            let mut response = next.run(request).await;
            response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
            response
        }
        Err((status, reason)) => (status, reason).into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Checks whether a request may read the inspector. Returns the cookie that the response must set,
/// if any.
fn access(shown: &Shown, request: &Request) -> Result<Option<HeaderValue>, (StatusCode, &'static str)> {
    if request.method() != Method::GET {
        let message = "the inspector is read-only: use GET\n";
        return Err((StatusCode::METHOD_NOT_ALLOWED, message));
    }
    let Some(token) = &shown.token else {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        let authority = request.uri().authority().map(axum::http::uri::Authority::as_str);
        if host.or(authority).is_some_and(is_loopback) {
            return Ok(None);
        }
        let message = "this inspector has no token, so the URL must have the host localhost or 127.0.0.1\n";
        return Err((StatusCode::FORBIDDEN, message));
    };
    if presented(request.headers()).any(|presented| is_equal(presented, token)) {
        return Ok(None);
    }
    let query = request.uri().query().unwrap_or_default();
    let in_query = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    if in_query.is_some_and(|(_, presented)| is_equal(&presented, token)) {
        let cookie = format!("{COOKIE_NAME}={token}; HttpOnly; SameSite=Strict; Path=/");
        return Ok(HeaderValue::from_str(&cookie).ok());
    }
    let message =
        "this inspector needs its token: open /inspect/?token=TOKEN, or send `Authorization: Bearer TOKEN`\n";
    Err((StatusCode::UNAUTHORIZED, message))
}

/// Returns the tokens in the headers of a request.
fn presented(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    let cookies = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let cookies =
        cookies.flat_map(|header| header.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let cookies = cookies.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, token)| token);
    header.and_then(|header| header.strip_prefix("Bearer ")).into_iter().chain(cookies)
}

/// Compares two tokens in a time that does not depend on the position of the first difference.
fn is_equal(presented: &str, token: &str) -> bool {
    presented.as_bytes().ct_eq(token.as_bytes()).into()
}

/// Returns whether the value of a `Host` header is `localhost` or a loopback address.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split_once(']').map_or(address, |(address, _)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.1.2.3", "[::1]:80", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com:80", "10.0.0.1", "127.0.0.1.nip.io", "[::2]", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
