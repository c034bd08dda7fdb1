//! Checks that each test exists that docs/scenarios.md or docs/errors.md names as
//! `crate: file::test`.

use std::path::Path;

use anyhow::Context;

use super::Finding;
use super::sources::Source;

const FILES: [&str; 2] = ["docs/errors.md", "docs/scenarios.md"];

/// Every name of a test in the documents contains this text.
const MARK: &str = ".rs::";

pub(crate) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for file in FILES {
        let text = std::fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        findings.extend(compare(file, &text, sources));
    }
    Ok(findings)
}

fn compare(file: &str, text: &str, sources: &[Source]) -> Vec<Finding> {
    let lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    let named = lines.flat_map(|(number, line)| {
        let code = line.split('`').skip(1).step_by(2);
        code.filter(|code| code.contains(MARK)).map(move |name| (number, name))
    });
    let missing = named.filter(|(_, name)| !exists(name, sources));
    let remedy = |name| format!("there is no test `{name}`: correct its name, or write it");
    missing.map(|(number, name)| Finding::new(file, number, remedy(name))).collect()
}

fn exists(name: &str, sources: &[Source]) -> bool {
    let Some((place, test)) = name.rsplit_once("::") else { return false };
    let path = place.replacen(": ", "/", 1);
    let start = format!("fn {test}(");
    let is_test = |source: &Source| {
        source.lines().any(|(number, line)| source.is_test(number) && line.contains(&start))
    };
    sources.iter().any(|source| source.path == Path::new(&path) && is_test(source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> [Source; 1] {
        [Source::new("a/tests/b.rs", "//! B.\nasync fn it_works() {}\n")]
    }

    #[test]
    fn existing_test_passes_and_other_code_does_not() {
        assert_eq!(compare("a.md", "| x | see `Y::z`: `a: tests/b.rs::it_works` |", &sources()), []);
    }

    #[test]
    fn missing_test_is_found() {
        for name in ["a: tests/b.rs::it_breaks", "a: tests/c.rs::it_works", "tests/b.rs::it_works"] {
            assert_eq!(compare("a.md", &format!("\n| x | `{name}` |"), &sources())[0].line, 2, "{name}");
        }
    }

    #[test]
    fn test_name_must_match_fully() {
        assert_eq!(compare("a.md", "`a: tests/b.rs::it_work`", &sources()).len(), 1);
    }
}
