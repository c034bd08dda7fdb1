//! `cargo xtask guide`: builds the guide in `docs/guide` as a book, and checks the links between
//! its pages.
//!
//! `cargo test -p guide` compiles the Rust code blocks, and runs those without `no_run`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::process;
use crate::signals::Signals;
use crate::tools::Tool;
use crate::workspace;

/// mdBook, which builds the guide. The arguments leave out its web server, because a browser can
/// open the built pages as files.
const MDBOOK: Tool =
    Tool { name: "mdbook", version: "0.5.4", args: &["--no-default-features", "--features", "search"] };

/// The folder of the built book. `docs/guide/book.toml` has the same path.
const BOOK: &str = "target/guide";

/// Arguments of `cargo xtask guide`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Open the book in the browser
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let root = workspace::root();
    let mut command = Command::new(MDBOOK.ensure(&root, signals)?);
    command.arg("build").arg(root.join("docs/guide"));
    if args.open {
        command.arg("--open");
    }
    process::run_or_fail(&mut command, signals, "mdbook failed; its message is above")?;
    let pages = pages(&root.join(BOOK))?;
    let dead = dead_links(&pages, |file| root.join(BOOK).join(file).is_file());
    for link in &dead {
        eprintln!("{link}");
    }
    if !dead.is_empty() {
        bail!("the guide has {} dead links, which are listed above", dead.len());
    }
    eprintln!("guide: built {} pages in {BOOK}, and found no dead links between them", pages.len());
    Ok(ExitCode::SUCCESS)
}

/// Reads the HTML files in `folder`, except 404.html. Returns their contents by file name.
fn pages(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // The links of 404.html are relative to the root of a site.
        if name.ends_with(".html") && name != "404.html" {
            let html =
                std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(name.to_owned(), html);
        }
    }
    Ok(pages)
}

/// Returns a message for each relative link to a file or heading that does not exist.
fn dead_links(pages: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let headings: BTreeMap<&str, BTreeSet<&str>> =
        pages.iter().map(|(name, html)| (name.as_str(), values(html, "id").collect())).collect();
    let mut dead = Vec::new();
    for (name, html) in pages {
        for link in values(html, "href").chain(values(html, "src")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.contains(':') || link == "#" {
                continue;
            }
            let file = if file.is_empty() { name } else { file };
            let is_dead = match headings.get(file) {
                Some(ids) => !heading.is_empty() && !ids.contains(heading),
                None => !exists(file),
            };
            if is_dead {
                dead.push(format!("docs/guide: {name} links to `{link}`, which does not exist"));
            }
        }
    }
    dead.dedup();
    dead
}

fn values<'h>(html: &'h str, attribute: &str) -> impl Iterator<Item = &'h str> {
    let start = format!(" {attribute}=\"");
    html.match_indices(&start)
        .map(|(at, start)| &html[at + start.len()..])
        .filter_map(|rest| Some(rest.split_once('"')?.0))
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(link: &str) -> usize {
        let a = format!("<h1 id=\"top\">A</h1><a href=\"{link}\">b</a>");
        let pages = [("a.html", a.as_str()), ("b.html", "<h2 id=\"it\">B</h2>")];
        let pages = pages.map(|(name, html)| (name.to_owned(), html.to_owned()));
        dead_links(&BTreeMap::from(pages), |file| file == "images/c.svg").len()
    }

    #[test]
    fn existing_pages_headings_and_files_are_accepted() {
        for link in ["b.html", "b.html#it", "#top", "images/c.svg", "https://example.com/x#y", "#"] {
            assert_eq!(dead(link), 0, "{link}");
        }
    }

    #[test]
    fn missing_pages_headings_and_files_are_found() {
        for link in ["c.html", "b.html#top", "#it", "images/d.svg", "../README.md"] {
            assert_eq!(dead(link), 1, "{link}");
        }
    }
}
