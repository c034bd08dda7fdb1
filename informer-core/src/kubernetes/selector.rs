//! [`parse_selector`]: parses label selectors as kubectl and the API server do.
//!
//! The grammar is that of `labels.Parse` (apimachinery, pkg/labels/selector.go). A missing value
//! means the empty string: `x in (a,)` selects the values `a` and the empty string, and `x in ()`
//! selects only the empty string.

use std::collections::BTreeSet;

use kube_core::{Expression, Selector};

use crate::SelectorError;

/// Parses a label selector such as `app=web,tier!=cache,env in (prod, stage),!canary`. An empty
/// string selects everything.
///
/// ```
/// use informer_core::parse_selector;
///
/// let selector = parse_selector("app=web, tier notin (cache), !canary")?;
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache),!canary");
/// # Ok::<(), informer_core::SelectorError>(())
/// ```
///
/// # Errors
/// [`SelectorError::Syntax`] if `text` is not a selector, or contains an invalid label key or
/// value; [`SelectorError::Unsupported`] for `>` and `<`, which kube's [`Selector`] can't express.
#[doc(alias = "Parse")]
pub fn parse_selector(text: &str) -> Result<Selector, SelectorError> {
    let mut tokens = Tokens { text, ahead: text };
    let mut requirements = Vec::new();
    if tokens.peek().is_some() {
        loop {
            requirements.push(tokens.requirement()?);
            match tokens.next() {
                None => break,
                Some(",") => {}
                Some(found) => return Err(tokens.expected("\",\" or the end", Some(found))),
            }
        }
    }
    Ok(requirements.into_iter().collect())
}

/// Splits a selector into tokens. `ahead` is the part of `text` that has not been read.
struct Tokens<'a> {
    text: &'a str,
    ahead: &'a str,
}

fn is_symbol(character: char) -> bool {
    matches!(character, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

impl<'a> Tokens<'a> {
    /// Removes and returns the next token: an operator, a parenthesis, a comma, or a word.
    fn next(&mut self) -> Option<&'a str> {
        let text = self.ahead.trim_start_matches([' ', '\t', '\r', '\n']);
        let first = text.chars().next()?;
        let len = if text.starts_with("==") || text.starts_with("!=") {
            2
        } else if is_symbol(first) {
            1
        } else {
            text.find(|c| is_symbol(c) || matches!(c, ' ' | '\t' | '\r' | '\n')).unwrap_or(text.len())
        };
        let (token, ahead) = text.split_at(len);
        self.ahead = ahead;
        Some(token)
    }

    fn peek(&self) -> Option<&'a str> {
        Tokens { text: self.text, ahead: self.ahead }.next()
    }

    fn requirement(&mut self) -> Result<Expression, SelectorError> {
        let mut token = self.next();
        let negated = token == Some("!");
        if negated {
            token = self.next();
        }
        let key = match token {
            Some(key) if is_key(key) => key.to_owned(),
            found => return Err(self.expected("a label key", found)),
        };
        if negated {
            return Ok(Expression::DoesNotExist(key));
        }
        if matches!(self.peek(), None | Some(",")) {
            return Ok(Expression::Exists(key));
        }
        Ok(match self.next() {
            Some("=" | "==") => Expression::Equal(key, self.value()?),
            Some("!=") => Expression::NotEqual(key, self.value()?),
            Some("in") => Expression::In(key, self.values()?),
            Some("notin") => Expression::NotIn(key, self.values()?),
            Some(operator @ (">" | "<")) => {
                return Err(SelectorError::Unsupported { operator: operator.to_owned() });
            }
            found => return Err(self.expected("=, ==, !=, in or notin", found)),
        })
    }

    /// Parses the value after `=`, `==` or `!=`.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            None | Some(",") => Ok(String::new()),
            Some(value) if is_value(value) => {
                self.next();
                Ok(value.to_owned())
            }
            found => Err(self.expected("a value", found)),
        }
    }

    /// Parses the values in parentheses after `in` or `notin`.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        match self.next() {
            Some("(") => {}
            found => return Err(self.expected("\"(\"", found)),
        }
        let (mut values, mut value) = (BTreeSet::new(), None);
        loop {
            match self.next() {
                Some(end @ ("," | ")")) => {
                    values.insert(value.take().unwrap_or_default());
                    if end == ")" {
                        return Ok(values);
                    }
                }
                Some(word) if value.is_none() && is_value(word) => value = Some(word.to_owned()),
                found => return Err(self.expected("a value, \",\" or \")\"", found)),
            }
        }
    }

    fn expected(&self, expected: &'static str, found: Option<&str>) -> SelectorError {
        let found = found.map_or_else(|| "the end".to_owned(), |token| format!("\"{token}\""));
        SelectorError::Syntax { text: self.text.to_owned(), expected, found }
    }
}

/// Returns whether a string is valid as the name in a label key, and as a non-empty label value.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Returns whether a string is a valid label key: a name, optionally after a DNS subdomain and a
/// slash.
fn is_key(text: &str) -> bool {
    let is_label = |part: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| *byte != b'-');
        let bytes = part.as_bytes();
        let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
        bytes.iter().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
    };
    match text.split_once('/') {
        None => is_name(text),
        Some((prefix, name)) => is_name(name) && prefix.len() <= 253 && prefix.split('.').all(is_label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        parse_selector(text).unwrap_or_else(|error| panic!("{error}")).to_string()
    }

    #[test]
    fn selector_is_parsed_as_by_the_api_server() {
        // Many of these cases are from apimachinery's own tests, some of them shortened.
        for (text, expected) in [
            ("", ""),
            ("  ", ""),
            ("\rx", "x"),
            ("a ", "a"),
            ("x=a,y=b,z=c", "x=a,y=b,z=c"),
            ("x==a", "x=a"),
            ("x!=a,y=b", "x!=a,y=b"),
            ("x=", "x="),
            ("x= ,z= ", "x=,z="),
            ("!x", "!x"),
            ("this-is-a-dns.domain.com/key-with-dash", "this-is-a-dns.domain.com/key-with-dash"),
            ("0.1.2.domain/99 notin (10.10.100.1, a.b)", "0.1.2.domain/99 notin (10.10.100.1,a.b)"),
            ("foo  in\t (abc)", "foo in (abc)"),
            ("x notin\n (abc,def)", "x notin (abc,def)"),
            ("x in (abc,)", "x in (,abc)"),
            ("x in (abc,abc)", "x in (abc)"),
            ("x in ()", "x in ()"),
            ("x in (a,,,)", "x in (,a)"),
            ("x notin (, a)", "x notin (,a)"),
            ("x notin (abc,,def),bar,z in (),w", "x notin (,abc,def),bar,z in (),w"),
            ("a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)"),
            ("in in (in),notin", "in in (in),notin"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn empty_parentheses_mean_the_empty_value() {
        let Some(Expression::In(_, values)) = parse_selector("x in ()").expect("valid").into_iter().next()
        else {
            panic!("not an `in`");
        };
        assert_eq!(values.into_iter().collect::<Vec<_>>(), [""]);
    }

    #[test]
    fn invalid_selector_error_has_the_expected_token() {
        for text in [
            "x=a||y=b",
            "x==a==b",
            "!x=a",
            "x,,y",
            ",x,y",
            "x,",
            "x nott in (y)",
            "a in (xyz),",
            "a in (xyz)b",
            "a in (xyz abc)",
            "a notin(",
            "a (",
            "(",
            "a in x",
            "!",
            "=a",
            "x=(a)",
            "x=a b",
            "-x",
            "x=-a",
            "a/b/c",
            "A.b/c",
            "/x",
            "a..b/x",
            "x=ä",
        ] {
            let error = parse_selector(text).expect_err(text);
            assert!(matches!(error, SelectorError::Syntax { .. }), "{text:?}: {error}");
        }
        let error = parse_selector("app in web").expect_err("no parentheses");
        assert_eq!(
            error.to_string(),
            "\"app in web\" is not a label selector: expected \"(\", found \"web\""
        );
        assert!(parse_selector(&format!("x={}", "a".repeat(63))).is_ok());
        assert!(parse_selector(&format!("x={}", "a".repeat(64))).is_err());
    }

    #[test]
    fn numeric_comparison_is_unsupported() {
        let error = parse_selector("x>1").expect_err("not supported");
        assert_eq!(error, SelectorError::Unsupported { operator: ">".into() });
    }
}
