//! Checks that the invariants that code cites have tests. A comment such as `I4: ...` marks code
//! that keeps the invariant I4. Then a test whose name begins with `i4_` must exist.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::sources::{Source, comment};

/// The invariants are I1 to I12.
const COUNT: u32 = 12;

pub(crate) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut cited = BTreeMap::new();
    let mut tested = BTreeSet::new();
    let mut findings = Vec::new();
    for source in sources {
        for (number, line) in source.lines() {
            tested.extend(test_of(line));
            if source.is_test(number) {
                continue;
            }
            for invariant in comment(line).map(citations).unwrap_or_default() {
                if invariant == 0 || invariant > COUNT {
                    let remedy = format!("there is no I{invariant}: the invariants are I1 to I{COUNT}");
                    findings.push(Finding::new(&source.path, number, remedy));
                } else {
                    cited.entry(invariant).or_insert((&source.path, number));
                }
            }
        }
    }
    cited.retain(|invariant, _| !tested.contains(invariant));
    findings.extend(cited.into_iter().map(|(invariant, (path, line))| {
        let remedy =
            format!("I{invariant} has code but no test: write a test and name it `i{invariant}_...`");
        Finding::new(path, line, remedy)
    }));
    findings
}

/// Returns the invariants at the start of a comment: `I4: ...` or `I4, I7: ...`.
fn citations(comment: &str) -> Vec<u32> {
    let Some((names, _)) = comment.split_once(':') else {
        return Vec::new();
    };
    let numbers: Option<Vec<u32>> =
        names.split(',').map(|name| name.trim().strip_prefix('I')?.parse().ok()).collect();
    numbers.unwrap_or_default()
}

/// Returns the number of the invariant that a test's name begins with: 4 for a line that declares
/// the function `i4_is_kept`.
fn test_of(line: &str) -> Option<u32> {
    let (_, name) = line.split_once("fn i")?;
    let (number, _) = name.split_once('_')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_cites_an_invariant_needs_its_test() {
        let code = Source::new("a/src/lib.rs", "//! A.\nfn a() {} // I4: kept\n// I4: again\n");
        assert_eq!(check(std::slice::from_ref(&code))[0].line, 2);
        let test = Source::new("a/tests/b.rs", "async fn i4_is_kept() {}\n");
        assert_eq!(check(&[code, test]), []);
    }

    #[test]
    fn test_of_another_invariant_does_not_count() {
        let code = Source::new("a/src/lib.rs", "// I1: kept\n");
        let test = Source::new("a/tests/b.rs", "fn i12_is_kept() {}\n");
        assert_eq!(check(&[code, test]).len(), 1);
    }

    #[test]
    fn unknown_invariant_is_found() {
        assert_eq!(check(&[Source::new("a/src/lib.rs", "// I13: what?\n")]).len(), 1);
    }

    #[test]
    fn only_the_start_of_a_comment_cites() {
        assert_eq!(citations("I4: kept"), [4]);
        assert_eq!(citations("I4, I7: kept"), [4, 7]);
        assert_eq!(citations("see I4: kept"), [0_u32; 0]);
        assert_eq!(citations("I know: kept"), [0_u32; 0]);
        assert_eq!(citations("I4 is kept"), [0_u32; 0]);
    }
}
