//! Checks that read one Rust source file at a time: its length, forbidden texts, the names of its
//! tests, sleeps in tests, and the documentation of cancel safety.

use super::Finding;
use super::sources::{Source, code, comment};

/// Maximum number of lines of a file that is neither generated nor a test file.
const MAX_LINES: usize = 400;

const MAX_TEST_NAME: usize = 60;

/// Pairs of a forbidden text and its remedy. The last text is forbidden in comments and in code.
/// The other texts are forbidden in code only.
const FORBIDDEN: [(&str, &str); 4] = [
    // `concat!`, because this file must not contain the forbidden texts itself.
    (concat!("thread", "::sleep"), "wait for an event (a channel, a condition), and not for time to pass"),
    (concat!("todo", "!("), "write the missing code, or return an error"),
    (concat!("unimplemented", "!("), "write the missing code, or return an error"),
    (concat!("```", "ignore"), "make the example compile: `no_run`, or hidden `#` lines"),
];

/// The remedy for a test that sleeps in a file that never pauses the clock.
const REAL_SLEEP: &str = "no sleep in real time: pause the test's clock \
                          (`#[tokio::test(start_paused = true)]`), or wait for the event itself";

const NO_CANCEL_SAFETY: &str = "add a `# Cancel safety` section to its documentation: what is lost, and \
                                what is not, when the future is dropped before it is done";

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |line: usize, remedy: &str| {
        findings.push(Finding::new(&source.path, line, remedy));
    };
    if !source.text.starts_with("//! ") {
        found(1, "begin the file with a `//!` line that describes its content");
    }
    let lines: Vec<&str> = source.text.lines().collect();
    if lines.len() > MAX_LINES && !source.is_test_file() && !source.is_generated() {
        let remedy = format!("split the file: it has {} lines, more than {MAX_LINES}", lines.len());
        found(MAX_LINES + 1, &remedy);
    }
    let is_library = source.is_library();
    let is_paused = ["start_paused", "time::pause("].iter().any(|text| source.text.contains(text));
    for (number, line) in source.lines() {
        if line.ends_with(char::is_whitespace) {
            found(number, "remove the white space at the end of the line");
        }
        for (text, remedy) in FORBIDDEN {
            let place = if text.starts_with('`') { line } else { code(line) };
            if place.contains(text) {
                found(number, &format!("no `{text}`: {remedy}"));
            }
        }
        if source.is_test(number) {
            if has_long_name(line) {
                found(number, &format!("shorten the name of the test to {MAX_TEST_NAME} characters"));
            }
            // A test that sleeps in real time is slow, and it fails on slow machines.
            if !is_paused && code(line).contains(concat!("time", "::sleep")) {
                found(number, REAL_SLEEP);
            }
        } else if is_library && lacks_cancel_safety(&lines[..number]) {
            found(number, NO_CANCEL_SAFETY);
        }
    }
    findings
}

/// Returns whether a line of test code declares a function whose name is too long for the reports of
/// test runs.
fn has_long_name(line: &str) -> bool {
    let Some((_, name)) = code(line).split_once("fn ") else { return false };
    let end = name.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    end.unwrap_or(name.len()) > MAX_TEST_NAME
}

/// Returns whether the last of `lines` declares a public async function whose documentation has no
/// section on cancel safety. Callers need the section, because `select!` drops futures before they
/// complete.
fn lacks_cancel_safety(lines: &[&str]) -> bool {
    let Some((line, before)) = lines.split_last() else { return false };
    let before = before.iter().rev().map(|line| line.trim());
    let mut docs = before.take_while(|line| line.starts_with("///") || line.starts_with("#["));
    line.trim_start().starts_with("pub async fn ")
        && !docs.any(|line| comment(line) == Some("# Cancel safety"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path, text)).iter().map(|f| f.line).collect()
    }

    const NONE: [usize; 0] = [];

    const LIB: &str = "informer-core/src/lib.rs";

    #[test]
    fn a_clean_file_passes() {
        assert_eq!(lines(LIB, "//! A.\n\nfn a() {}\n"), NONE);
    }

    #[test]
    fn file_without_header_is_found() {
        assert_eq!(lines(LIB, "fn a() {}\n"), [1]);
    }

    #[test]
    fn long_handwritten_library_file_is_found() {
        let long = |first: &str| format!("{first}\n{}", "fn a() {}\n".repeat(MAX_LINES));
        assert_eq!(lines(LIB, &long("//! A.")), [MAX_LINES + 1]);
        assert_eq!(lines(LIB, &long("//! A. @generated")), NONE);
        assert_eq!(lines("a/tests/b.rs", &long("//! A.")), NONE);
    }

    #[test]
    fn long_test_name_is_found() {
        let test = |length: usize| format!("//! A.\n\n#[test]\nfn {}() {{}}\n", "a".repeat(length));
        assert_eq!(lines("a/tests/b.rs", &test(MAX_TEST_NAME)), NONE);
        assert_eq!(lines("a/tests/b.rs", &test(MAX_TEST_NAME + 1)), [4]);
        assert_eq!(lines(LIB, &test(MAX_TEST_NAME + 1).replace("#[test]\n", "")), NONE);
    }

    #[test]
    fn forbidden_text_is_found_in_code_only() {
        for (text, _) in FORBIDDEN {
            assert_eq!(lines(LIB, &format!("//! A.\nfn a() {{ {text} }}\n")), [2], "{text}");
        }
        let commented = format!("//! A.\n// {} blocks\n", FORBIDDEN[0].0);
        assert_eq!(lines(LIB, &commented), NONE);
        let fence = format!("//! A.\n//! {}\n", FORBIDDEN[3].0);
        assert_eq!(lines(LIB, &fence), [2]);
    }

    #[test]
    fn trailing_white_space_is_found() {
        assert_eq!(lines(LIB, "//! A.\nfn a() {} \n"), [2]);
    }

    #[test]
    fn sleep_in_real_time_is_found() {
        let sleep = concat!("tokio::time", "::sleep(d).await;");
        assert_eq!(lines("a/tests/b.rs", &format!("//! A.\n{sleep}\n")), [2]);
        assert_eq!(lines(LIB, &format!("//! A.\n{sleep}\n")), NONE);
        let paused = format!("//! A.\n#[tokio::test(start_paused = true)]\n{sleep}\n");
        assert_eq!(lines("a/tests/b.rs", &paused), NONE);
    }

    #[test]
    fn missing_cancel_safety_section_is_found() {
        assert_eq!(lines(LIB, "//! A.\n/// B.\npub async fn b() {}\n"), [3]);
        let documented =
            "//! A.\n/// B.\n///\n/// # Cancel safety\n///\n/// Yes.\n#[inline]\npub async fn b() {}\n";
        assert_eq!(lines(LIB, documented), NONE);
        assert_eq!(lines("examples/src/a.rs", "//! A.\npub async fn b() {}\n"), NONE);
        assert_eq!(lines(LIB, "//! A.\npub(crate) async fn b() {}\n"), NONE);
    }
}
