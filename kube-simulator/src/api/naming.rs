//! Validation of the names of objects and labels.
//!
//! The rules and messages are those of `k8s.io/apimachinery/pkg/util/validation`. Each check
//! returns its error messages; the list is empty if the name is valid.

/// Maximum length of a label's name and of its value, and of a DNS label.
const MAX_LABEL_LENGTH: usize = 63;

const MAX_SUBDOMAIN_LENGTH: usize = 253;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const LABEL_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const TOO_MANY_PARTS: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and \
    end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// Checks the name of a label or of an annotation: `name` or `example.com/name`.
pub(crate) fn label_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => return vec![TOO_MANY_PARTS.to_owned()],
    };
    let mut errors = match prefix {
        None => Vec::new(),
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")).collect(),
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL_LENGTH {
        errors.push(format!("name part {}", too_long(MAX_LABEL_LENGTH)));
    }
    if !is_label_text(name) {
        errors.push(LABEL_NAME.to_owned());
    }
    errors
}

pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_LABEL_LENGTH {
        errors.push(too_long(MAX_LABEL_LENGTH));
    }
    if !text.is_empty() && !is_label_text(text) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

/// Checks a DNS subdomain. Most kinds require that object names have this form.
pub(crate) fn subdomain(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_SUBDOMAIN_LENGTH {
        errors.push(too_long(MAX_SUBDOMAIN_LENGTH));
    }
    if !text.split('.').all(is_dns_label) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

/// Checks a DNS label. Names of namespaces and services must have this form.
pub(crate) fn label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > MAX_LABEL_LENGTH {
        errors.push(too_long(MAX_LABEL_LENGTH));
    }
    if text.contains('.') && text.split('.').all(is_dns_label) {
        errors.push("must not contain dots".to_owned());
    } else if !is_dns_label(text) {
        errors.push(DNS_LABEL.to_owned());
    }
    errors
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn is_label_text(text: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let within = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    ends(text.chars().next()) && ends(text.chars().next_back()) && text.chars().all(within)
}

fn is_dns_label(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends = |c: Option<char>| c.is_some_and(plain);
    ends(text.chars().next()) && ends(text.chars().next_back()) && text.chars().all(|c| plain(c) || c == '-')
}
