//! [`ResourceVersion`]: the version that the server gives an object or a list.
//!
//! Versions are compared as KEP-5504 requires (`CompareResourceVersion` of apimachinery): decimal
//! numbers without leading zeros, of any length. Some aggregated API servers use other strings,
//! which are stored unchanged and have no order.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A resource version, exactly as the server sent it.
///
/// Two versions are equal if their strings are equal. [`compare`](Self::compare) returns the order
/// of two versions, if they have one. The order is meaningful only for versions of one resource.
///
/// ```
/// use std::cmp::Ordering;
/// use informer_core::ResourceVersion;
///
/// let (older, newer) = (ResourceVersion::from("999"), ResourceVersion::from("1000"));
/// assert_eq!(older.compare(&newer), Some(Ordering::Less));
/// assert_eq!(older.compare(&ResourceVersion::from("v2-abc")), None);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(Repr);

#[derive(Clone, PartialEq, Eq, Hash, Default)]
enum Repr {
    #[default]
    Empty,
    /// `0`, or a decimal number without leading zeros, if it fits in 64 bits. etcd's revisions fit.
    Number(u64),
    Text(Arc<str>),
}

impl ResourceVersion {
    /// Returns the empty version. Objects have this version until the server has created them.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns whether this is the empty version.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == Repr::Empty
    }

    /// Returns the order of two versions of one resource. Returns `None` unless both are decimal
    /// numbers above zero without leading zeros.
    #[must_use]
    #[doc(alias = "CompareResourceVersion")]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (&self.0, &other.0) {
            (Repr::Number(0), _) | (_, Repr::Number(0)) => None,
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            _ => {
                let (a, b) = (self.to_string(), other.to_string());
                let comparable = is_canonical_decimal(&a) && is_canonical_decimal(&b);
                comparable.then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(&b)))
            }
        }
    }

    /// Returns whether this version is the same as `other` or later; `false` if
    /// [`compare`](Self::compare) returns no order of the two.
    #[must_use]
    pub fn is_at_least(&self, other: &Self) -> bool {
        self.compare(other).is_some_and(Ordering::is_ge)
    }

    /// Returns whether this version is later than `other`; `false` if [`compare`](Self::compare)
    /// returns no order of the two.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.compare(other).is_some_and(Ordering::is_gt)
    }

    /// Returns whether this version can be compared with others: whether it is a decimal number
    /// above zero without leading zeros.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.compare(self).is_some()
    }
}

/// Returns whether a string is a decimal number above zero without leading zeros.
fn is_canonical_decimal(text: &str) -> bool {
    text.starts_with(|first: char| matches!(first, '1'..='9'))
        && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::empty();
        }
        match text.parse::<u64>() {
            // `parse` also accepts "+1" and "007", but they must be stored unchanged.
            Ok(number) if text == "0" || is_canonical_decimal(text) => Self(Repr::Number(number)),
            _ => Self(Repr::Text(text.into())),
        }
    }
}

impl From<Option<&str>> for ResourceVersion {
    fn from(text: Option<&str>) -> Self {
        text.map_or_else(Self::empty, Self::from)
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Empty => Ok(()),
            Repr::Number(number) => fmt::Display::fmt(number, f),
            Repr::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(a: &str, b: &str) -> Option<Ordering> {
        ResourceVersion::from(a).compare(&ResourceVersion::from(b))
    }

    #[test]
    fn decimals_are_compared_by_length_and_then_by_bytes() {
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("10", "10"), Some(Ordering::Equal));
        assert_eq!(compare("1001", "1000"), Some(Ordering::Greater));
    }

    #[test]
    fn decimals_above_64_bits_are_compared() {
        let long = "340282366920938463463374607431768211455";
        assert_eq!(compare(long, "18446744073709551615"), Some(Ordering::Greater));
        assert_eq!(compare("5", long), Some(Ordering::Less));
        assert_eq!(compare(long, long), Some(Ordering::Equal));
    }

    #[test]
    fn non_canonical_versions_have_no_order() {
        for text in ["", "0", "007", "+1", "-1", "1.5", "abc", "12a"] {
            assert_eq!(compare(text, "5"), None, "{text:?} with 5");
            assert_eq!(compare("5", text), None, "5 with {text:?}");
            assert!(!ResourceVersion::from(text).is_comparable(), "{text:?}");
        }
    }

    #[test]
    fn every_version_text_is_returned_unchanged() {
        for text in ["", "0", "007", "+1", "42", "18446744073709551616", "abc"] {
            assert_eq!(ResourceVersion::from(text).to_string(), text);
        }
    }
}
