//! Field managers: the rules for their names, and the default name from the `User-Agent`.
//!
//! Counterparts: `ValidateFieldManager` in `k8s.io/apimachinery`, and `prefixFromUserAgent` in
//! `k8s.io/apiserver`.

use crate::api::status::{FieldError, FieldErrors};

/// Maximum length of a field manager's name, in bytes.
const MAX_LENGTH: usize = 128;

/// Returns the validation errors of a name. An empty name is valid, because it counts as absent.
pub(super) fn check(name: &str) -> Vec<FieldError> {
    let mut errors = FieldErrors::default();
    if name.len() > MAX_LENGTH {
        errors.push(FieldError::too_long("fieldManager", MAX_LENGTH));
    }
    for (at, character) in name.char_indices().filter(|(_, character)| !is_printable(*character)) {
        // Each error contains the whole name.
        if errors.is_full() {
            break;
        }
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
        errors.push(FieldError::invalid("fieldManager", &format!("{name:?}"), &why));
    }
    errors.into_vec()
}

/// Returns the default field manager for a `User-Agent` header.
pub(super) fn of_user_agent(agent: &str) -> String {
    let mut name = String::new();
    for character in agent.split('/').next().unwrap_or_default().chars().filter(|next| is_printable(*next)) {
        if name.len() + character.len_utf8() > MAX_LENGTH {
            break;
        }
        name.push(character);
    }
    name
}

/// Behaves like Go's `unicode.IsPrint`.
fn is_printable(character: char) -> bool {
    // At the start of a string, `escape_debug` also escapes combining marks, which are printable.
    // After the `a`, it escapes only quotes, backslashes and unprintable characters.
    let escaped = format!("a{character}").escape_debug().count() > 2;
    !escaped || matches!(character, '"' | '\'' | '\\')
}
