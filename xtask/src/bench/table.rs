//! The table of our results and client-go's, as Markdown and as JSON.

use serde_json::{Value, json};

use super::cases::{Case, Unit};
use super::figures::Figures;
use super::machine::Machine;

/// A benchmark case with its medians. A median is `None` if it was not measured.
struct Row<'a> {
    case: &'a Case,
    client_go: Option<f64>,
    ours: Option<f64>,
}

fn rows<'a>(
    cases: &'a [Case],
    ours: &'a Figures,
    client_go: &'a Figures,
) -> impl Iterator<Item = Row<'a>> + 'a {
    cases.iter().map(|case| Row {
        case,
        client_go: case.client_go.and_then(|name| client_go.median(name, case.unit)),
        ours: ours.median(case.ours, case.unit),
    })
}

impl Row<'_> {
    /// Returns the factor by which our median is better than client-go's; `None` if a median is
    /// missing, or if the factor is not positive and finite.
    fn ratio(&self) -> Option<f64> {
        let (ours, client_go) = (self.ours?, self.client_go?);
        let ratio = if self.case.unit.more_is_better() { ours / client_go } else { client_go / ours };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    fn meets_goal(&self) -> Option<bool> {
        let (ours, goal) = (self.ours?, self.case.goal?);
        Some(if self.case.unit.more_is_better() { ours >= goal } else { ours <= goal })
    }
}

pub(crate) fn markdown(cases: &[Case], ours: &Figures, client_go: &Figures) -> String {
    let mut lines =
        vec!["| | client-go | ours | times better | goal |".to_owned(), "|---|---|---|---|---|".to_owned()];
    for row in rows(cases, ours, client_go) {
        let unit = row.case.unit;
        let figure = |value: Option<f64>| value.map_or("–".to_owned(), |value| shown(value, unit));
        let goal = match (row.case.goal, row.meets_goal()) {
            (None, _) => String::new(),
            (Some(goal), Some(false)) => format!("{}, missed", shown(goal, unit)),
            (Some(goal), _) => shown(goal, unit),
        };
        let ratio = row.ratio().map_or("–".to_owned(), three_digits);
        let (client_go, ours) = (figure(row.client_go), figure(row.ours));
        lines.push(format!("| {} | {client_go} | {ours} | {ratio} | {goal} |", row.case.title));
    }
    lines.join("\n")
}

pub(crate) fn json(machine: &Machine, cases: &[Case], ours: &Figures, client_go: &Figures) -> Value {
    let rows: Vec<Value> = rows(cases, ours, client_go)
        .map(|row| {
            json!({
                "case": row.case.title,
                "unit": row.case.unit.name(),
                "clientGo": row.client_go,
                "ours": row.ours,
                "timesBetter": row.ratio(),
                "goal": row.case.goal,
                "meetsGoal": row.meets_goal(),
            })
        })
        .collect();
    json!({ "machine": machine, "cases": rows })
}

/// Formats a value with its unit: `1.53 µs`, `2,000,000 events/s`.
fn shown(value: f64, unit: Unit) -> String {
    format!("{} {}", three_digits(value), unit.name())
}

/// Formats a number with the precision of the measurements: three significant digits, at most three
/// decimals.
pub(super) fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(2 - magnitude);
    let decimals = usize::try_from(2 - magnitude).unwrap_or(0).min(3);
    let rounded = format!("{:.decimals$}", (value * scale).round() / scale);
    let (whole, fraction) = rounded.split_once('.').unwrap_or((&rounded, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = with_commas(whole);
    if fraction.is_empty() { whole } else { format!("{whole}.{fraction}") }
}

fn with_commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_three_digits_and_grouped() {
        let table = [
            (1_234_567.0, "1,230,000"),
            (999.6, "1,000"),
            (41.0, "41"),
            (1.525, "1.53"),
            (0.06012, "0.06"),
            (0.0, "0"),
            (-12_345.0, "-12,300"),
        ];
        for (value, expected) in table {
            assert_eq!(three_digits(value), expected, "{value}");
        }
    }

    #[test]
    fn row_has_the_ratio_and_the_goal() {
        let case = |unit, goal| Case { title: "t", unit, client_go: Some("c"), ours: "o", goal };
        let cases = [
            case(Unit::Nanoseconds, Some(40.0)),
            case(Unit::Events, Some(40.0)),
            case(Unit::Nanoseconds, None),
        ];
        let (mut ours, mut client_go) = (Figures::default(), Figures::default());
        ours.take_output("bench: o = 50 x");
        client_go.take_output("bench: c = 100 x");
        let table = markdown(&cases, &ours, &client_go);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(rows[0], "| t | 100 ns | 50 ns | 2 | 40 ns, missed |");
        assert_eq!(rows[1], "| t | 100 events/s | 50 events/s | 0.5 | 40 events/s |");
        assert_eq!(rows[2], "| t | 100 ns | 50 ns | 2 |  |");
    }

    #[test]
    fn missing_figure_is_a_dash() {
        let cases = [Case { title: "t", unit: Unit::Events, client_go: None, ours: "o", goal: Some(1.0) }];
        let table = markdown(&cases, &Figures::default(), &Figures::default());
        assert_eq!(table.lines().last(), Some("| t | – | – | – | 1 events/s |"));
    }
}
