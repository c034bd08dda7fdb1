//! Checks the code map in ARCHITECTURE.md: it names every member of the workspace, and each name
//! with the form of `informer-core` or `examples/` exists.

use std::path::Path;

use anyhow::Context;

use super::Finding;

const FILE: &str = "ARCHITECTURE.md";

/// The heading of the code map, in lower case.
const HEADING: &str = "code map";

pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let text = std::fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    Ok(compare(&text, &members(&manifest), |folder| root.join(folder).exists()))
}

fn compare(text: &str, members: &[&str], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let map = section(text);
    let Some((heading, _)) = map.first() else {
        let remedy = "add a section with the heading \"Code map\" that names every crate";
        return vec![Finding::new(FILE, 1, remedy)];
    };
    let mut findings = Vec::new();
    let mut named = Vec::new();
    for (number, line) in &map {
        for name in names(line) {
            named.push(name);
            if is_folder(name) && !exists(name) {
                let remedy = format!("`{name}` does not exist: correct the code map");
                findings.push(Finding::new(FILE, *number, remedy));
            }
        }
    }
    for member in members {
        if !named.iter().any(|name| name.trim_end_matches('/') == *member) {
            let remedy = format!("add `{member}/` to the code map: it is a member of the workspace");
            findings.push(Finding::new(FILE, *heading, remedy));
        }
    }
    findings
}

/// Returns the lines from the heading of the code map to the next heading of the same or a higher
/// level.
fn section(text: &str) -> Vec<(usize, &str)> {
    let depth = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
    let is_map = |line: &str| depth(line) > 0 && line.to_lowercase().contains(HEADING);
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    let Some(heading) = lines.find(|(_, line)| is_map(line)) else {
        return Vec::new();
    };
    let rest = lines.take_while(|(_, line)| depth(line) == 0 || depth(line) > depth(heading.1));
    std::iter::once(heading).chain(rest).collect()
}

/// Returns the strings between backticks in a line.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Returns whether a name has the form of the names to check: `informer-core` or `examples/`.
fn is_folder(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/.".contains(c));
    plain && (name.ends_with('/') || (name.starts_with("informer-") && !name.contains('.')))
}

fn members(manifest: &str) -> Vec<&str> {
    let list = manifest.split_once("members = [").map(|(_, rest)| rest);
    let list = list.and_then(|rest| rest.split_once(']'));
    list.map_or_else(Vec::new, |(list, _)| list.split('"').skip(1).step_by(2).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "# A\n\n## Code map\n\n- `informer-core/`: b, see `Store`\n\n## Other\n`no/`\n";

    #[test]
    fn correct_map_passes() {
        assert_eq!(compare(MAP, &["informer-core"], |_| true), []);
    }

    #[test]
    fn missing_folder_is_found() {
        assert_eq!(compare(MAP, &["informer-core"], |_| false)[0].line, 5);
    }

    #[test]
    fn unmapped_crate_is_found() {
        assert_eq!(compare(MAP, &["informer-core", "xtask"], |_| true)[0].line, 3);
    }

    #[test]
    fn missing_map_is_found() {
        assert_eq!(compare("# A\n", &[], |_| true).len(), 1);
    }

    #[test]
    fn members_come_from_the_manifest() {
        let manifest = "[workspace]\nmembers = [\n    \"a\",\n    \"b\",\n]\n[x]\ny = [\"z\"]\n";
        assert_eq!(members(manifest), ["a", "b"]);
    }
}
