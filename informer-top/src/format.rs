//! Numbers, times and texts as the screen shows them. The rules for numbers follow those of the
//! inspector's page (`draw.js` of informer-monitor). Only times below 0.005 ms and the rounding of
//! halves differ.

use ratatui::text::Span;

/// The text of a missing value.
pub(crate) const NONE: &str = "–";

/// Writes a number with a comma between thousands.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a number and a noun, with a plural `s` unless the number is 1: `1 list`, `2 lists`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

pub(crate) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => NONE.to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 10.0 => format!("{rate:.1}"),
        Some(rate) => count(rate.round() as u64),
    }
}

/// Writes a number of bytes, such as `1.5 MB`. One KB is 1,000 bytes.
pub(crate) fn bytes(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes as f64, 0);
    let units = ["B", "KB", "MB", "GB"];
    while number >= 1000.0 && unit < units.len() - 1 {
        number /= 1000.0;
        unit += 1;
    }
    let decimals = usize::from(number < 10.0 && unit > 0);
    format!("{number:.decimals$} {}", units[unit])
}

/// Writes a duration, given in milliseconds, with one unit, such as `1.5 s`.
pub(crate) fn duration(ms: f64) -> String {
    let seconds = ms / 1000.0;
    match ms {
        _ if ms > 0.0 && ms < 0.005 => "<0.01 ms".to_owned(),
        _ if ms > 0.0 && ms < 1.0 => format!("{ms:.2} ms"),
        _ if ms < 10.0 && ms.fract() != 0.0 => format!("{ms:.1} ms"),
        _ if ms < 1000.0 => format!("{ms:.0} ms"),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        _ if seconds < 60.0 => format!("{seconds:.0} s"),
        _ if seconds < 3600.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} d", seconds / 86400.0),
    }
}

/// Returns the number of terminal columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Cuts a text to a width. The last column of a cut text is `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    // The text is first cut by characters, so that the loop is short even for a long error.
    let mut short: String = text.chars().take(columns).collect();
    while width(&short) + 1 > columns && short.pop().is_some() {}
    if columns > 0 {
        short.push('…');
    }
    short
}

/// Makes a text `columns` wide: cuts the text, or adds spaces on its right.
pub(crate) fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let spaces = columns.saturating_sub(width(&text));
    text + &" ".repeat(spaces)
}

/// Makes a text `columns` wide: cuts the end of the text, or adds spaces on its left.
pub(crate) fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(width(&text))) + &text
}

/// Joins parts to lines of at most `columns` columns. A part that is longer than a line is cut.
pub(crate) fn flow<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    separator: &str,
    columns: usize,
) -> Vec<String> {
    let mut lines = Vec::<String>::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if width(line) + width(separator) + width(part) <= columns => {
                line.push_str(separator);
                line.push_str(part);
            }
            _ => lines.push(cut(part, columns)),
        }
    }
    lines
}

/// Breaks a text between its words into lines of at most `columns` columns.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    flow(text.split(' '), " ", columns)
}

/// Returns the lines of a table. Columns of numbers are aligned to the right.
pub(crate) fn table<const N: usize>(is_number: [bool; N], rows: &[[String; N]]) -> Vec<String> {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0));
    let cell = |row: &[String; N], column: usize| match is_number[column] {
        true => right(&row[column], widths[column]),
        false if column == N - 1 => row[column].clone(),
        false => left(&row[column], widths[column]),
    };
    rows.iter().map(|row| std::array::from_fn::<_, N, _>(|column| cell(row, column)).join("  ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_form_of_the_page() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let rates = [None, Some(0.0), Some(0.26), Some(9.94), Some(1234.5)].map(rate);
        assert_eq!(rates, ["–", "0", "0.3", "9.9", "1,235"]);
        assert_eq!([999, 1_500, 12_345_678].map(bytes), ["999 B", "1.5 KB", "12 MB"]);
        let times = [0.0, 0.001, 0.25, 1.5, 20.0, 1_500.0, 59_000.0, 90_000.0, 7_200_000.0].map(duration);
        assert_eq!(
            times,
            ["0 ms", "<0.01 ms", "0.25 ms", "1.5 ms", "20 ms", "1.5 s", "59 s", "2 min", "2 h"]
        );
        assert_eq!([counted(1, "list"), counted(2, "list")], ["1 list", "2 lists"]);
    }

    #[test]
    fn long_text_is_cut_with_an_ellipsis() {
        assert_eq!(left("pods", 6), "pods  ");
        assert_eq!(right("pods", 6), "  pods");
        assert_eq!(cut("deployments", 6), "deplo…");
        assert_eq!((width(&cut("資源資源", 4)), cut("pods", 0)), (3, String::new()));
    }

    #[test]
    fn parts_continue_on_the_next_line() {
        let parts = ["first", "second", "third"];
        assert_eq!(flow(parts, " · ", 16), ["first · second", "third"]);
        assert_eq!(flow(parts, " · ", 5), ["first", "seco…", "third"]);
        assert_eq!(wrap("a few words", 5), ["a few", "words"]);
    }
}
