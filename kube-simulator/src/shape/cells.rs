//! The cells of tables.

use jiff::Timestamp;
use serde_json::Value;

use super::path::{JsonPath, text_of};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub(crate) type_name: String,
    pub(crate) format: String,
    pub(crate) description: String,
    /// 0 for columns that are always shown; higher for those of `kubectl get -o wide`.
    pub(crate) priority: i64,
    pub(crate) cell: Cell,
}

/// The source of a cell's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The value at a path, unchanged.
    At(JsonPath),
    /// The time since the timestamp at a path.
    Since(JsonPath),
    Computed(Computed),
}

/// A function for one column of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Computed(pub(crate) fn(&Value) -> Value);

/// Always equal: columns are compared by their names, which determine the function.
impl PartialEq for Computed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Computed {}

impl Column {
    pub(crate) fn new(name: &str, type_name: &str, cell: Cell) -> Self {
        Self {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            cell,
        }
    }

    /// Returns the last column of most kinds.
    pub(crate) fn age() -> Self {
        let created = JsonPath::parse(".metadata.creationTimestamp");
        let cell = created.map_or(Cell::Computed(Computed(|_| unknown())), Cell::Since);
        Self::new("Age", "string", cell)
    }

    pub(crate) fn show(&self, object: &Value, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Computed(Computed(compute)) => compute(object),
            Cell::Since(path) => {
                path.find(object).and_then(Value::as_str).map_or_else(unknown, |time| since(time, now))
            }
            Cell::At(path) => match path.find(object) {
                None | Some(Value::Null) => Value::Null,
                Some(found) if self.type_name == "string" => text_of(found).into(),
                Some(found) => found.clone(),
            },
        }
    }
}

fn unknown() -> Value {
    "<unknown>".into()
}

fn since(time: &str, now: Timestamp) -> Value {
    match time.parse::<Timestamp>() {
        Ok(time) => human_duration(now.as_second() - time.as_second()).into(),
        Err(_) => "<invalid>".into(),
    }
}

/// Formats a duration like apimachinery's `duration.HumanDuration`: at most two units.
fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |value: i64, big: i64, unit: &str, small: i64, small_unit: &str| {
        let rest = value % big / small;
        let whole = value / big;
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small_unit}") }
    };
    match seconds {
        i64::MIN..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    //! Formats of durations.

    use super::human_duration;

    #[test]
    fn human_duration_matches_kubectl() {
        let cases = [
            (5, "5s"),
            (119, "119s"),
            (185, "3m5s"),
            (180, "3m"),
            (3_600, "60m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (1_000_000, "11d"),
            (63_072_000 + 86_400, "2y1d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected);
        }
    }
}
