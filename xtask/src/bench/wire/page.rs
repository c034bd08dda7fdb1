//! Writes each measurement's table, with links to its charts, to docs/benchmarks.md between two
//! markers. The charts are files in docs/benchmarks/.

use std::path::Path;

use anyhow::{Context, bail};

use super::chart;
use super::parts::{Chart, Part};
use super::results::Results;

const PAGE: &str = "docs/benchmarks.md";
const CHARTS: &str = "docs/benchmarks";

/// Writes the table and the charts of `part`. `measured` describes machine, versions and date.
pub(crate) fn write(
    root: &Path,
    part: Part,
    measured: &str,
    results: &Results,
    clients: &[&str],
) -> anyhow::Result<()> {
    let folder = root.join(CHARTS);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut content = format!("{measured}\n\n{}\n", results.table(part, clients));
    for chart in part.charts() {
        let path = folder.join(chart.file);
        std::fs::write(&path, draw(chart, results, clients))
            .with_context(|| format!("cannot write {}", path.display()))?;
        content.push_str(&format!("\n![{}](benchmarks/{})\n", chart.title, chart.file));
    }
    let path = root.join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = replace(&page, part.name(), &content)?;
    std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn draw(chart: &Chart, results: &Results, clients: &[&str]) -> String {
    match chart.figures {
        [figure] => {
            let values: Vec<(&str, f64)> = clients
                .iter()
                .filter_map(|client| Some((*client, results.median(client, figure, chart.unit)?)))
                .collect();
            chart::bars(chart.title, &values)
        }
        figures => {
            let values = |client: &str| {
                figures.iter().map(|figure| results.median(client, figure, chart.unit)).collect()
            };
            let series: Vec<_> = clients.iter().map(|client| (*client, values(client))).collect();
            chart::lines(chart.title, &series)
        }
    }
}

/// Returns `page` with `content` between the markers of the measurement `name`. Fails without
/// markers.
fn replace(page: &str, name: &str, content: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- begin: wire, {name} -->\n"), format!("<!-- end: wire, {name} -->"));
    let places = page.find(&begin).map(|at| at + begin.len()).zip(page.find(&end));
    let Some((start, stop)) = places.filter(|(start, stop)| start <= stop) else {
        bail!("{PAGE} lacks the markers `{}` and `{end}`", begin.trim());
    };
    Ok(format!("{}{content}{}", &page[..start], &page[stop..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_the_markers_is_replaced() {
        let page = "a\n<!-- begin: wire, x -->\nold\n<!-- end: wire, x -->\nb\n";
        let expected = "a\n<!-- begin: wire, x -->\nnew\n<!-- end: wire, x -->\nb\n";
        assert_eq!(replace(page, "x", "new\n").expect("the markers are there"), expected);
        assert!(replace(page, "y", "new\n").is_err());
    }
}
