//! [`Figures`]: the values that benchmark programs measured.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::cases::Unit;
use crate::workspace;

/// The measured values of each benchmark case. Repeated measurements add values to a case.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    by_case: HashMap<String, Vec<Figure>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Nanoseconds(f64),
    /// A number that is already in the unit in which the table shows it.
    Plain(f64),
}

/// Panics if there are no values.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    if is_even { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

/// The part of criterion's `estimates.json` that this program reads.
#[derive(Debug, Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Debug, Deserialize)]
struct Estimate {
    point_estimate: f64,
}

impl Figures {
    /// Returns the median of a case, with times converted to `unit`; `None` if the case was not
    /// measured.
    pub(crate) fn median(&self, case: &str, unit: Unit) -> Option<f64> {
        let figures = self.by_case.get(case)?;
        Some(median(figures.iter().map(|figure| figure.value(unit))))
    }

    /// Adds the values in lines `bench: CASE = VALUE UNIT` and `CASE: DURATION` of a program's
    /// output.
    pub(crate) fn take_output(&mut self, output: &str) {
        for (case, figure) in output.lines().filter_map(read_line) {
            self.by_case.entry(case.to_owned()).or_default().push(figure);
        }
    }

    /// Adds the medians in criterion's result folder.
    pub(crate) fn take_criterion(&mut self, folder: &Path) -> anyhow::Result<()> {
        let files = workspace::files_below(folder)
            .with_context(|| format!("cannot read criterion's results in {}", folder.display()))?;
        for path in files {
            // A benchmark case has the subfolder `CASE` or, in a group, `GROUP/CASE`.
            let name = path.strip_prefix(folder)?.to_str();
            let case = name.and_then(|name| name.strip_suffix("/new/estimates.json"));
            let Some(case) = case else { continue };
            let text = std::fs::read_to_string(&path)?;
            let Estimates { median } = serde_json::from_str(&text)
                .with_context(|| format!("{} has an unexpected format", path.display()))?;
            let figure = Figure::Nanoseconds(median.point_estimate);
            self.by_case.entry(case.to_owned()).or_default().push(figure);
        }
        Ok(())
    }
}

impl Figure {
    fn value(self, unit: Unit) -> f64 {
        match self {
            Self::Plain(value) => value,
            Self::Nanoseconds(value) => value / unit.nanoseconds().unwrap_or(1.0),
        }
    }
}

fn read_line(line: &str) -> Option<(&str, Figure)> {
    if let Some((case, figure)) = line.strip_prefix("bench: ").and_then(|line| line.rsplit_once(" = ")) {
        let value = figure.split(' ').next()?.parse().ok()?;
        return Some((case, Figure::Plain(value)));
    }
    let (case, duration) = line.rsplit_once(": ")?;
    Some((case, Figure::Nanoseconds(read_duration(duration)?)))
}

/// Parses a duration in Rust's debug format, such as `1.5ms`, to nanoseconds.
fn read_duration(text: &str) -> Option<f64> {
    // Longer units first, because each of them ends in `s`.
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (number, scale) = units.iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))?;
    number.parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_lines_of_both_forms_are_parsed() {
        let mut figures = Figures::default();
        figures
            .take_output("hello\nbench: a, b = 2.5 events/s\nlongest stall: 1.5ms\nlongest stall: 4.5ms\n");
        assert_eq!(figures.median("a, b", Unit::Events), Some(2.5));
        assert_eq!(figures.median("longest stall", Unit::Milliseconds), Some(3.0));
        assert_eq!(figures.median("hello", Unit::Events), None);
    }

    #[test]
    fn rust_durations_are_parsed() {
        for nanoseconds in [7, 1_500, 2_500_000, 3_000_000_000] {
            let text = format!("{:?}", std::time::Duration::from_nanos(nanoseconds));
            assert_eq!(read_duration(&text), Some(nanoseconds as f64), "{text}");
        }
    }

    #[test]
    fn criterion_medians_are_found_by_case_and_group() {
        let folder = tempfile::tempdir().expect("a folder");
        for (case, median) in [("get", "40.5"), ("replace/all", "2e6")] {
            let path = folder.path().join(case).join("new");
            std::fs::create_dir_all(&path).expect("a writable folder");
            let json = format!(r#"{{"mean":{{}},"median":{{"point_estimate":{median}}}}}"#);
            std::fs::write(path.join("estimates.json"), json).expect("a writable folder");
        }
        let mut figures = Figures::default();
        figures.take_criterion(folder.path()).expect("criterion's format");
        assert_eq!(figures.median("get", Unit::Nanoseconds), Some(40.5));
        assert_eq!(figures.median("replace/all", Unit::Milliseconds), Some(2.0));
    }
}
