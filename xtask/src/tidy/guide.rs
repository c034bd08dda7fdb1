//! Checks that each page of the guide is in the table of contents, and has a test that compiles its
//! code blocks.

use std::path::Path;

use anyhow::Context;

use super::Finding;
use super::sources::Source;

const PAGES: &str = "docs/guide/src";

/// The file that includes each page as documentation tests.
const TESTS: &str = "docs/guide/lib.rs";

pub(crate) fn check(root: &Path, documents: &[Source]) -> anyhow::Result<Vec<Finding>> {
    let tests = std::fs::read_to_string(root.join(TESTS)).with_context(|| format!("cannot read {TESTS}"))?;
    let (contents, pages): (Vec<_>, Vec<_>) = documents
        .iter()
        .filter(|document| document.path.starts_with(PAGES))
        .partition(|document| document.path.ends_with("SUMMARY.md"));
    let contents = contents.first().map_or("", |contents| &contents.text);
    Ok(pages.into_iter().flat_map(|page| check_page(page, contents, &tests)).collect())
}

fn check_page(page: &Source, contents: &str, tests: &str) -> Vec<Finding> {
    let name = page.path.file_name().unwrap_or_default().to_string_lossy();
    let mut findings = Vec::new();
    if !contents.contains(&format!("({name})")) {
        findings.push(Finding::new(&page.path, 1, format!("add the page to {PAGES}/SUMMARY.md")));
    }
    if !tests.contains(&format!("include_str!(\"src/{name}\")")) {
        findings.push(Finding::new(&page.path, 1, format!("include the page in {TESTS}, as a test")));
    }
    let ignored = page.lines().filter(|(_, line)| line.starts_with("```") && line.contains("ignore"));
    findings.extend(ignored.map(|(number, _)| {
        Finding::new(&page.path, number, "make the code block compile: `no_run`, or hidden `# ` lines")
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTED: &str = "#[doc = include_str!(\"src/a.md\")]";

    fn lines(name: &str, text: &str) -> Vec<usize> {
        let page = Source::new(format!("{PAGES}/{name}"), text);
        check_page(&page, "- [A](a.md)", TESTED).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn listed_and_tested_page_passes() {
        assert!(lines("a.md", "# A\n\n```rust,no_run\n```\n").is_empty());
    }

    #[test]
    fn page_without_entry_or_test_is_found() {
        assert_eq!(lines("b.md", "# B\n"), [1, 1]);
    }

    #[test]
    fn ignored_block_is_found() {
        assert_eq!(lines("a.md", concat!("# A\n```rust,ig", "nore\n```\n")), [2]);
    }
}
