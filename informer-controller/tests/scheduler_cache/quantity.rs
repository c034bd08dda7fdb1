//! Parses Kubernetes quantities in every form that the API server writes: `2`, `0.5`, `250m`,
//! `100n`, `128Mi`, `1G`, `12e6`. Fractions are rounded up, as in Go's `Quantity.Value`.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a quantity in thousandths, for processor time.
pub(crate) fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    read(deserializer, 1000)
}

/// Reads a quantity in whole units, for bytes and counts.
pub(crate) fn units<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u128, D::Error> {
    read(deserializer, 1)
}

fn read<'de, D: Deserializer<'de>>(deserializer: D, parts: u128) -> Result<u128, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text, parts).map(u128::from).ok_or_else(|| {
        D::Error::custom(format!(
            "invalid quantity `{text}`: expected a value of 0 or more, such as `2`, `250m` or `128Mi`"
        ))
    })
}

/// Parses a quantity, in units of 1/`parts`.
fn parse(text: &str, parts: u128) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, divisor) = scale(suffix)?;
    let divisor = 10_u128.checked_pow(fraction.len().try_into().ok()?)?.checked_mul(divisor)?;
    let counted = digits.checked_mul(times)?.checked_mul(parts)?.div_ceil(divisor);
    counted.try_into().ok()
}

/// Returns the multiplier and the divisor of a suffix.
fn scale(suffix: &str) -> Option<(u128, u128)> {
    let power = |base: u128, exponent| base.checked_pow(exponent);
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1_000),
        _ => {
            let (base, letter) = match suffix.strip_suffix('i') {
                Some("K") => return Some((1024, 1)),
                Some(letter) => (1024, letter),
                None if suffix == "k" => return Some((1000, 1)),
                None => (1000, suffix),
            };
            if let Some(exponent) =
                suffix.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty() && *rest != "i")
            {
                let exponent: i32 = exponent.parse().ok()?;
                let factor = power(10, exponent.unsigned_abs())?;
                return Some(if exponent < 0 { (1, factor) } else { (factor, 1) });
            }
            let at = ["M", "G", "T", "P", "E"].iter().position(|known| *known == letter)?;
            (power(base, u32::try_from(at).ok()? + 2)?, 1)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_quantity_is_parsed() {
        for (text, units) in [
            ("0", 0),
            ("110", 110),
            ("1.5", 2),
            (".5", 1),
            ("5.", 5),
            ("1500m", 2),
            ("1n", 1),
            ("3000000u", 3),
            ("1k", 1_000),
            ("1Ki", 1_024),
            ("128Mi", 128 << 20),
            ("1.5Gi", 3 << 29),
            ("2M", 2_000_000),
            ("1G", 1_000_000_000),
            ("1T", 1_000_000_000_000),
            ("1Pi", 1 << 50),
            ("1E", 1_000_000_000_000_000_000),
            ("1Ei", 1 << 60),
            ("12e6", 12_000_000),
            ("12E6", 12_000_000),
            ("2500e-3", 3),
            ("1e+3", 1_000),
        ] {
            assert_eq!(parse(text, 1), Some(units), "{text}");
        }
    }

    #[test]
    fn cpu_is_parsed_in_thousandths() {
        for (text, millis) in [("2", 2000), ("250m", 250), ("0.15", 150), ("100u", 1), ("1n", 1)] {
            assert_eq!(parse(text, 1000), Some(millis), "{text}");
        }
    }

    #[test]
    fn invalid_quantity_is_an_error() {
        for text in
            ["", "Mi", "-1", "1 Gi", "1.2.3", "1mi", "1ki", "1K", "0x10", "1ee3", "e3", "99999999999E"]
        {
            assert_eq!(parse(text, 1), None, "{text}");
        }
    }
}
