//! The table of informers: its columns, their widths, and the order of its rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::data::{Informer, Rates};
use crate::format::{NONE, count, cut, duration, left, rate, right, width};

/// Names are not cut to less than this width.
const MIN_NAME: usize = 16;
const MIN_HEALTH: usize = 20;
const GAP: &str = "  ";

#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The informer's description, or its identifier if several informers have this description.
    pub(crate) name: String,
    pub(crate) informer: Informer,
    pub(crate) rates: Rates,
}

/// The variants are in the order of the columns on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Objects,
    Events,
    Queued,
    Lag,
    LastEvent,
    Quarantined,
    Lists,
    Failures,
    /// As on the inspector's page, informers with problems are first by default.
    #[default]
    Health,
}

/// The columns of numbers. The first ones are the most important and get space first. A column that
/// does not fit is omitted.
const NUMBERS: [Column; 8] = [
    Column::Events,
    Column::Objects,
    Column::Lag,
    Column::Queued,
    Column::LastEvent,
    Column::Quarantined,
    Column::Failures,
    Column::Lists,
];

impl Column {
    pub(crate) const ALL: [Self; 10] = [
        Self::Name,
        Self::Objects,
        Self::Events,
        Self::Queued,
        Self::Lag,
        Self::LastEvent,
        Self::Quarantined,
        Self::Lists,
        Self::Failures,
        Self::Health,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::Name => "INFORMER",
            Self::Objects => "OBJECTS",
            Self::Events => "EVENTS/S",
            Self::Queued => "QUEUED",
            Self::Lag => "LAG",
            Self::LastEvent => "LAST EVENT",
            Self::Quarantined => "QUARANTINED",
            Self::Lists => "LISTS",
            Self::Failures => "FAILURES",
            Self::Health => "HEALTH",
        }
    }

    /// Returns the next column to the right, or to the left if `is_right` is `false`. After the
    /// last column comes the first.
    pub(crate) fn next(self, is_right: bool) -> Self {
        let index = Self::ALL.iter().position(|other| *other == self).unwrap_or(0);
        let step = if is_right { 1 } else { Self::ALL.len() - 1 };
        Self::ALL[(index + step) % Self::ALL.len()]
    }

    fn text(self, row: &Row) -> String {
        let informer = &row.informer;
        match self {
            Self::Name => row.name.clone(),
            Self::Objects => count(informer.objects),
            Self::Events => rate(row.rates.events),
            Self::Queued => count(informer.queued),
            Self::Lag => count(informer.lag()),
            Self::LastEvent => informer.last_event_ms.map_or_else(|| NONE.to_owned(), duration),
            Self::Quarantined => count(informer.quarantined),
            Self::Lists => count(informer.lists),
            Self::Failures => count(informer.failures),
            Self::Health => informer.health_words(),
        }
    }

    /// Compares two rows by this column. The worst health counts as the greatest value.
    fn compare(self, a: &Row, b: &Row) -> Ordering {
        let fractions = |a: Option<f64>, b: Option<f64>| a.unwrap_or(-1.0).total_cmp(&b.unwrap_or(-1.0));
        let (one, other) = (&a.informer, &b.informer);
        match self {
            Self::Name => a.name.cmp(&b.name),
            Self::Objects => one.objects.cmp(&other.objects),
            Self::Events => fractions(a.rates.events, b.rates.events),
            Self::Queued => one.queued.cmp(&other.queued),
            Self::Lag => one.lag().cmp(&other.lag()),
            Self::LastEvent => fractions(one.last_event_ms, other.last_event_ms),
            Self::Quarantined => one.quarantined.cmp(&other.quarantined),
            Self::Lists => one.lists.cmp(&other.lists),
            Self::Failures => one.failures.cmp(&other.failures),
            Self::Health => other.severity().cmp(&one.severity()),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    pub(crate) column: Column,
    /// Whether the sort direction is the opposite of the column's default direction.
    pub(crate) is_reversed: bool,
}

impl Order {
    fn is_ascending(self) -> bool {
        // Only names are in ascending order by default.
        (self.column == Column::Name) != self.is_reversed
    }

    /// Sorts the rows. Equal rows are sorted by name, so that their order does not change.
    pub(crate) fn sort(self, rows: &mut [&Row]) {
        rows.sort_by(|a, b| {
            let order = self.column.compare(a, b);
            let order = if self.is_ascending() { order } else { order.reverse() };
            order.then_with(|| a.name.cmp(&b.name))
        });
    }

    /// Returns the arrow in the title of a column; empty if the rows are not sorted by this column.
    fn arrow(self, column: Column) -> &'static str {
        match (self.column == column, self.is_ascending()) {
            (false, _) => "",
            (true, true) => "▲",
            (true, false) => "▼",
        }
    }
}

/// The columns that are shown, with their widths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout(Vec<(Column, usize)>);

impl Layout {
    /// Chooses the columns for a screen. Always includes name and health; health takes the rest of
    /// the line, which can be empty.
    pub(crate) fn new(rows: &[&Row], screen: usize) -> Self {
        let longest = |column| longest(rows, column);
        let mut name = longest(Column::Name).min((screen * 2 / 5).max(MIN_NAME));
        let mut rest = screen.saturating_sub(name + GAP.len());
        let mut shown = Vec::new();
        for column in NUMBERS {
            let width = longest(column);
            if rest >= MIN_HEALTH + GAP.len() + width {
                rest -= GAP.len() + width;
                shown.push((column, width));
            }
        }
        // If names are cut, the name column gets the space that the health column does not need.
        let spare = rest.saturating_sub(longest(Column::Health)).min(longest(Column::Name) - name);
        name += spare;
        rest -= spare;
        shown.extend([(Column::Name, name), (Column::Health, rest)]);
        shown.sort_by_key(|(column, _)| Column::ALL.iter().position(|other| other == column));
        Self(shown)
    }

    /// Returns all columns, for an output without a width limit.
    pub(crate) fn complete(rows: &[&Row]) -> Self {
        Self(Column::ALL.map(|column| (column, longest(rows, column))).to_vec())
    }

    /// Returns the line with the titles of the columns. The arrow of the sorted column can be in
    /// the gap between columns.
    pub(crate) fn head(&self, order: Order) -> String {
        let cells = self.0.iter().map(|(column, width)| {
            let (title, arrow) = (column.title(), order.arrow(*column));
            match column {
                Column::Health => format!("{title}{arrow}"),
                Column::Name => left(&format!("{title}{arrow}"), width + GAP.len()),
                _ => left(&format!("{}{arrow}", right(title, *width)), width + GAP.len()),
            }
        });
        cells.collect()
    }

    /// Returns the line of a row in two parts: all columns except health, and the health, which can
    /// have a different color.
    pub(crate) fn cells(&self, row: &Row) -> (String, String) {
        let cells = self.0.iter().map(|(column, width)| {
            let text = column.text(row);
            match column {
                // Health is the last column, so no spaces follow it.
                Column::Health => cut(&text, *width),
                Column::Name => left(&text, *width),
                _ => right(&text, *width),
            }
        });
        let mut cells: Vec<_> = cells.collect();
        let health = cells.pop().unwrap_or_default();
        cells.push(String::new());
        (cells.join(GAP), health)
    }
}

/// Returns the width of the longest text of a column, including its title.
fn longest(rows: &[&Row], column: Column) -> usize {
    let widths = rows.iter().map(|row| width(&column.text(row)));
    widths.max().unwrap_or(0).max(column.title().len())
}

/// Describes the health of all informers, such as `2 of 3 informers live, 1 forbidden`.
pub(crate) fn health(rows: &[Row]) -> String {
    let mut others = BTreeMap::<&str, usize>::new();
    for Row { informer, .. } in rows {
        match (&*informer.state, &*informer.health) {
            ("running" | "", "live") => {}
            ("running" | "", health) => *others.entry(health).or_default() += 1,
            (state, _) => *others.entry(state).or_default() += 1,
        }
    }
    let live = rows.len() - others.values().sum::<usize>();
    let others: Vec<_> = others.into_iter().map(|(state, number)| format!("{number} {state}")).collect();
    match (live, rows.len()) {
        (_, 0) => "no informers".to_owned(),
        (1, 1) => "the informer is live".to_owned(),
        (live, all) if live == all => format!("all {all} informers live"),
        (live, all) => format!("{live} of {all} informers live, {}", others.join(", ")),
    }
}
