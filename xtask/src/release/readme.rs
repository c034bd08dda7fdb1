//! Checks the links of a crate's README, which crates.io shows without the files of the repository.

use std::path::Path;

use anyhow::Context;

use super::packages::Package;

/// The parts of a URL between the repository and the path of the file.
const FILES: [&str; 3] = ["/blob/main/", "/tree/main/", "/raw/main/"];

pub(crate) fn problems(root: &Path, package: &Package, repository: &str) -> anyhow::Result<Vec<String>> {
    let file = format!("{}/README.md", package.name);
    let text = std::fs::read_to_string(root.join(&file)).with_context(|| format!("cannot read {file}"))?;
    let mut problems = Vec::new();
    for (number, link) in links(&text) {
        if let Some(remedy) = remedy(link, repository, |path| root.join(path).exists()) {
            problems.push(format!("{file}:{number}: the link `{link}` {remedy}"));
        }
    }
    Ok(problems)
}

/// Returns the reason why a link does not work on crates.io; for a relative link, with a remedy.
fn remedy(link: &str, repository: &str, exists: impl Fn(&str) -> bool) -> Option<String> {
    if link.starts_with('#') {
        return None;
    }
    let Some((_, address)) = link.split_once("://") else {
        let url = if repository.is_empty() { "the URL of the repository" } else { repository };
        return Some(format!(
            "is relative: link to another crate on docs.rs, or to a file below {url}, or write only its name"
        ));
    };
    if address.is_empty() || repository.is_empty() {
        return None;
    }
    let path = link.strip_prefix(repository)?;
    let path = FILES.into_iter().find_map(|prefix| path.strip_prefix(prefix))?;
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    (!exists(path)).then(|| "names a file that the repository does not have".to_owned())
}

/// Returns the targets of links and images, each with its line number. Code blocks have no links.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut is_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // `[text](target "title")`, and the definition `[text]: target`.
        let inline = line.match_indices("](").filter_map(|(start, _)| line[start + 2..].split_once(')'));
        links.extend(inline.map(|(target, _)| (number, target)));
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        links.extend(definition.map(|(_, target)| (number, target)));
        for attribute in ["href=\"", "src=\""] {
            let html = line.match_indices(attribute);
            let html = html.filter_map(|(start, found)| line[start + found.len()..].split_once('"'));
            links.extend(html.map(|(target, _)| (number, target)));
        }
    }
    links.iter_mut().for_each(|(_, target)| *target = target.split(' ').next().unwrap_or(target));
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_every_form_are_found() {
        let text =
            "# A\n[b](c.md \"title\") ![d](e.png)\n[f]: g.md\n<img src=\"h.png\">\n```rust\n[i](j)\n```\n";
        assert_eq!(links(text), [(2, "c.md"), (2, "e.png"), (3, "g.md"), (4, "h.png")]);
    }

    #[test]
    fn relative_links_and_missing_files_are_refused() {
        let url = "https://example.com/informers";
        let is_refused = |link: &str| remedy(link, url, |path| path == "docs/a.md").is_some();
        for link in ["../README.md", "tests/renamed", "https://example.com/informers/blob/main/docs/b.md"] {
            assert!(is_refused(link), "{link}");
        }
        for link in
            ["#heading", "https://docs.rs/kube", "https://example.com/informers/blob/main/docs/a.md#b"]
        {
            assert!(!is_refused(link), "{link}");
        }
        assert!(remedy("https://docs.rs/kube", "", |_| false).is_none());
    }
}
