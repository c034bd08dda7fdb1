//! The text form of label selectors, as in the `labelSelector` parameter.
//!
//! The grammar and messages are those of `k8s.io/apimachinery/pkg/labels`. `in` and `notin` are
//! operators only where an operator is expected; elsewhere they are labels or values.

use std::collections::BTreeSet;

use super::label::{Requirement, Test};
use crate::api::naming;

/// The list of operators in error messages. As in Kubernetes, it has `gt` and `lt` instead of `>`
/// and `<`.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// One word or sign of a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'a str),
    End,
}

/// The signs of the grammar. A longer sign precedes its prefixes, because the parser takes the
/// first sign that fits.
const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

impl<'a> Token<'a> {
    /// Returns the token's text for error messages.
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Sign(text) => text,
            Self::End => "",
        }
    }

    fn is_sign(self, sign: &str) -> bool {
        self == Token::Sign(sign)
    }
}

/// Parses a selector. The error is the message for the client.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { rest: text };
    let mut requirements = Vec::new();
    match parser.peek() {
        Token::End => return Ok(requirements),
        token if !begins_requirement(token) => {
            return Err(format!("found '{}', expected: !, identifier, or 'end of string'", token.text()));
        }
        _ => {}
    }
    loop {
        let requirement = parser.requirement();
        requirements.push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
        match parser.take() {
            Token::End => return Ok(requirements),
            Token::Sign(",") => {}
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
        let next = parser.peek();
        if !begins_requirement(next) {
            return Err(format!("found '{}', expected: identifier after ','", next.text()));
        }
    }
}

fn begins_requirement(token: Token<'_>) -> bool {
    matches!(token, Token::Word(_) | Token::Sign("!"))
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        Parser { rest: self.rest }.take()
    }

    fn take(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if self.rest.is_empty() {
            return Token::End;
        }
        if let Some(sign) = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign)) {
            self.rest = &self.rest[sign.len()..];
            return Token::Sign(sign);
        }
        let ends_word = |c: char| " \t\r\n=!(),><".contains(c);
        let end = self.rest.find(ends_word).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let is_missing = self.peek().is_sign("!");
        if is_missing {
            self.take();
        }
        let label = match self.take() {
            Token::Word(label) => label,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        check("<nil>", label, &naming::label_name(label))?;
        let label = label.to_owned();
        if is_missing {
            return Ok(Requirement { label, test: Test::Missing });
        }
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(Requirement { label, test: Test::Exists });
        }
        let test = self.test(&label)?;
        Ok(Requirement { label, test })
    }

    /// Parses an operator and its values.
    fn test(&mut self, label: &str) -> Result<Test, String> {
        match self.take() {
            Token::Word("in") => Ok(Test::In(self.set(label)?)),
            Token::Word("notin") => Ok(Test::NotIn(self.set(label)?)),
            Token::Sign("=" | "==") => Ok(Test::In(self.value(label)?)),
            Token::Sign("!=") => Ok(Test::NotIn(self.value(label)?)),
            Token::Sign(">") => Ok(Test::GreaterThan(self.bound(label)?)),
            Token::Sign("<") => Ok(Test::LessThan(self.bound(label)?)),
            other => Err(format!("found '{}', expected: {OPERATORS}", other.text())),
        }
    }

    /// Parses the single value after an operator such as `=` or `<`. The value can be empty.
    fn text(&mut self) -> Result<&'a str, String> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok("");
        }
        match self.take() {
            Token::Word(value) => Ok(value),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn value(&mut self, label: &str) -> Result<Vec<String>, String> {
        check_values(label, &BTreeSet::from([self.text()?]))
    }

    fn bound(&mut self, label: &str) -> Result<i64, String> {
        let value = self.text()?;
        let number = value.parse::<i64>().map_err(|_| {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            format!("values[0]: Invalid value: \"{value}\": {why}")
        });
        match (number, check_values(label, &BTreeSet::from([value]))) {
            (Ok(number), Ok(_)) => Ok(number),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
            (Err(first), Err(second)) => Err(format!("[{first}, {second}]")),
        }
    }

    /// Parses the values in parentheses. A missing value is empty: `()` contains one empty value.
    fn set(&mut self, label: &str) -> Result<Vec<String>, String> {
        let open = self.take();
        if !open.is_sign("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let (mut values, mut value) = (BTreeSet::new(), "");
        let mut expected = "',', ')' or identifier";
        loop {
            match self.take() {
                // A word is never empty, so `value` is empty if no word directly precedes this one.
                Token::Word(word) if value.is_empty() => {
                    value = word;
                    expected = "',' or ')'";
                }
                Token::Sign(sign @ ("," | ")")) => {
                    values.insert(std::mem::take(&mut value));
                    if sign == ")" {
                        return check_values(label, &values);
                    }
                    expected = "',', or identifier";
                }
                other => return Err(format!("found '{}', expected: {expected}", other.text())),
            }
        }
    }
}

/// Returns the values as a list. If values are invalid, returns one error for all of them, in the
/// format of `k8s.io/apimachinery/pkg/util/errors`.
fn check_values(label: &str, values: &BTreeSet<&str>) -> Result<Vec<String>, String> {
    let checked = values.iter().enumerate().map(|(index, value)| {
        check(&format!("values[{index}][{label}]"), value, &naming::label_value(value))
    });
    let errors: Vec<String> = checked.filter_map(Result::err).collect();
    match errors.as_slice() {
        [] => Ok(values.iter().map(ToString::to_string).collect()),
        [error] => Err(error.clone()),
        errors => Err(format!("[{}]", errors.join(", "))),
    }
}

fn check(what: &str, text: &str, wrong: &[String]) -> Result<(), String> {
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{what}: Invalid value: \"{text}\": {}", wrong.join("; ")))
}
