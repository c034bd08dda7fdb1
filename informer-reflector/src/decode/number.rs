//! [`Number`]: a JSON number, as the Rust type that a visitor receives.

use serde::de::{Error, Visitor};

use super::error::DecodeError;

pub(super) enum Number {
    Positive(u64),
    Negative(i64),
    /// A number with a fraction or an exponent, an integer of more than 64 bits, or `-0`.
    Float(f64),
}

impl Number {
    pub(super) fn read(text: &str) -> Self {
        let integer = match text.strip_prefix('-') {
            None => text.parse().ok().map(Self::Positive),
            // JSON has a negative zero, and integers don't.
            Some("0") => None,
            Some(_) => text.parse().ok().map(Self::Negative),
        };
        integer.unwrap_or_else(|| Self::Float(text.parse().unwrap_or(f64::INFINITY)))
    }

    pub(super) fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self {
            Self::Positive(value) => visitor.visit_u64(value),
            Self::Negative(value) => visitor.visit_i64(value),
            Self::Float(value) if value.is_finite() => visitor.visit_f64(value),
            Self::Float(_) => Err(DecodeError::custom("")),
        }
    }
}
