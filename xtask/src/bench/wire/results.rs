//! [`Results`]: the measured values of each client, and their table.

use std::collections::BTreeMap;

use super::parts::{Column, Part, Unit};
use super::runs::Figures;
use crate::bench::figures::median;
use crate::bench::table::three_digits;

/// The values of all rounds, by the name of the client and the name of the value, such as
/// `sync.cpu`.
#[derive(Debug, Default)]
pub(crate) struct Results(BTreeMap<&'static str, BTreeMap<String, Vec<f64>>>);

impl Results {
    pub(crate) fn add(&mut self, client: &'static str, figures: Figures) {
        let of_client = self.0.entry(client).or_default();
        for (name, value) in figures {
            of_client.entry(name).or_default().push(value);
        }
    }

    /// Returns the median in `unit`; `None` if the client has no value with this name.
    pub(crate) fn median(&self, client: &str, name: &str, unit: Unit) -> Option<f64> {
        let values = self.0.get(client)?.get(name)?;
        Some(median(values.iter().copied()) * unit.factor)
    }

    /// Returns a Markdown table of medians. Clients and columns without values are left out.
    pub(crate) fn table(&self, part: Part, clients: &[&str]) -> String {
        let has_figures = |column: &&Column| {
            clients.iter().any(|client| self.median(client, column.figure, column.unit).is_some())
        };
        let columns: Vec<&Column> = part.columns().iter().filter(has_figures).collect();
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        let mut lines =
            vec![format!("| | {} |", titles.join(" | ")), format!("|---|{}", "---|".repeat(columns.len()))];
        for client in clients.iter().filter(|client| self.0.get(**client).is_some_and(|of| !of.is_empty())) {
            let cells = columns.iter().map(|column| {
                let value = self.median(client, column.figure, column.unit);
                value.map_or("–".to_owned(), |value| shown(value, column.unit))
            });
            lines.push(format!("| {client} | {} |", cells.collect::<Vec<_>>().join(" | ")));
        }
        lines.join("\n")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!(self.0)
    }
}

/// Formats a value with its unit: `1.53 µs`, `24,000/s`.
fn shown(value: f64, unit: Unit) -> String {
    let space = if unit.name.starts_with('/') { "" } else { " " };
    format!("{}{space}{}", three_digits(value), unit.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_medians_and_leaves_out_empty_columns() {
        let mut results = Results::default();
        for value in [1.0, 3.0, 2.0] {
            results.add("a", vec![("sync.cpu".to_owned(), value), ("events.1.rate".to_owned(), 2e4)]);
        }
        results.add("b", vec![("sync.cpu".to_owned(), 0.5)]);
        let table = results.table(Part::Throughput, &["a", "b"]);
        assert_eq!(
            table,
            "| | sync, CPU | events |\n|---|---|---|\n| a | 2 s | 20,000/s |\n| b | 0.5 s | – |"
        );
    }
}
