//! Rules about language: no phrase of `phrases.txt` occurs, and functions whose names begin with
//! `is_` or `has_` do not change their receiver.

use super::Finding;
use super::sources::{Source, code};

/// One phrase per line, in lower case. A line that begins with `#` is a comment.
const PHRASES: &str = include_str!("phrases.txt");

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for phrase in phrases_in(line) {
            let remedy = format!("replace \"{phrase}\" with plain English: who does what?");
            findings.push(Finding::new(&source.path, number, remedy));
        }
        if is_mutating_question(code(line)) {
            let remedy =
                "a function called `is_…` or `has_…` must not change its receiver: name it after its action";
            findings.push(Finding::new(&source.path, number, remedy));
        }
    }
    findings
}

fn phrases_in(line: &str) -> impl Iterator<Item = &'static str> {
    let line = line.to_lowercase();
    let phrases = PHRASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    phrases.filter(move |phrase| contains_words(&line, phrase))
}

/// Returns whether `text` contains the phrase as whole words.
fn contains_words(text: &str, phrase: &str) -> bool {
    let is_inner =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    text.match_indices(phrase).any(|(start, _)| {
        let end = start + phrase.len();
        !is_inner(text[..start].chars().next_back()) && !is_inner(text[end..].chars().next())
    })
}

fn is_mutating_question(line: &str) -> bool {
    let Some((_, after)) = line.split_once("fn ") else { return false };
    (after.starts_with("is_") || after.starts_with("has_")) && after.contains("(&mut self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrase_is_found_as_whole_words_only() {
        let phrase = PHRASES.lines().find(|line| !line.starts_with('#')).expect("there is a phrase");
        let lines = format!("A {} b.\nx{phrase}\n{phrase}s\n", phrase.to_uppercase());
        let found: Vec<_> =
            check(&Source::new("README.md", lines)).iter().map(|finding| finding.line).collect();
        assert_eq!(found, [1]);
    }

    #[test]
    fn question_that_changes_its_receiver_is_found() {
        let source =
            Source::new("a/src/lib.rs", concat!("fn is_a(&self) {}\npub ", "fn is_b(&mut ", "self) {}\n"));
        assert_eq!(check(&source).iter().map(|finding| finding.line).collect::<Vec<_>>(), [2]);
    }
}
