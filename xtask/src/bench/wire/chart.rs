//! Draws bar charts and line charts as SVG images.

use std::fmt::Write;

use super::parts::SIZES;
use crate::bench::table::three_digits;

const WIDTH: f64 = 720.0;

/// The height of a bar, including the distance to the next bar.
const ROW: f64 = 26.0;

/// The width of the labels to the left of the bars.
const LABELS: f64 = 280.0;

/// The colors of clients with our informers.
const OURS: [&str; 6] = ["#1f6feb", "#54aeff", "#0a3069", "#0969da", "#80ccff", "#218bff"];

/// The colors of clients without our informers, such as client-go.
const OTHERS: [&str; 5] = ["#bc4c00", "#fb8f44", "#762d0a", "#d4a72c", "#1a7f37"];

fn colors<'a>(clients: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let (mut ours, mut others) = (OURS.iter().cycle(), OTHERS.iter().cycle());
    let color = |client: &str| if client.starts_with("ours") { ours.next() } else { others.next() };
    clients.map(color).map(|color| color.map_or("black", |color| *color)).collect()
}

/// Returns an SVG image with one bar for each client.
pub(crate) fn bars(title: &str, values: &[(&str, f64)]) -> String {
    let most = values.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let colors = colors(values.iter().map(|(client, _)| *client));
    let mut body = String::new();
    for (row, ((client, value), color)) in values.iter().zip(colors).enumerate() {
        let y = 40.0 + row as f64 * ROW;
        let width = value / most * (WIDTH - LABELS - 90.0);
        text(&mut body, LABELS - 8.0, y + 14.0, "end", client);
        rectangle(&mut body, [LABELS, y, width.max(1.0), ROW - 8.0], color);
        text(&mut body, LABELS + width + 6.0, y + 14.0, "start", &three_digits(*value));
    }
    image(title, 48.0 + values.len() as f64 * ROW, &body)
}

/// Returns an SVG image with one line for each client. A line has one value for each number in
/// [`SIZES`]. It omits `None` and values that are not positive.
pub(crate) fn lines(title: &str, series: &[(&str, Vec<Option<f64>>)]) -> String {
    // A logarithmic axis can show only positive values.
    let positive = |value: &f64| *value > 0.0;
    let values = || series.iter().flat_map(|(_, values)| values.iter().flatten().copied()).filter(positive);
    let lowest = values().fold(f64::MAX, f64::min).log10().floor();
    let highest = values().fold(f64::MIN_POSITIVE, f64::max).log10().ceil();
    let (left, right, top, bottom) = (70.0, WIDTH - 250.0, 50.0, 350.0);
    let x = |index: usize| left + (right - left) * index as f64 / (SIZES.len() - 1) as f64;
    let y = |value: f64| bottom - (bottom - top) * (value.log10() - lowest) / (highest - lowest).max(1.0);
    let mut body = String::new();
    for power in lowest as i32..=highest as i32 {
        let value = 10_f64.powi(power);
        rectangle(&mut body, [left, y(value), right - left, 0.5], "#8c959f");
        text(&mut body, left - 6.0, y(value) + 4.0, "end", &three_digits(value));
    }
    for (index, size) in SIZES.iter().enumerate() {
        text(&mut body, x(index), bottom + 20.0, "middle", &three_digits(*size as f64));
    }
    let colors = colors(series.iter().map(|(client, _)| *client));
    for (row, ((client, values), color)) in series.iter().zip(colors).enumerate() {
        let points = values.iter().enumerate();
        let points = points.filter_map(|(index, value)| Some((x(index), y(value.filter(positive)?))));
        let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let line = points.join(" ");
        writeln!(body, r#"<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2.5"/>"#).ok();
        let y = top + row as f64 * 22.0;
        rectangle(&mut body, [right + 20.0, y, 14.0, 4.0], color);
        text(&mut body, right + 40.0, y + 7.0, "start", client);
    }
    image(title, 390.0, &body)
}

// Writing to a string cannot fail, so the results of `writeln!` are ignored.

fn text(body: &mut String, x: f64, y: f64, anchor: &str, content: &str) {
    writeln!(body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{content}</text>"#).ok();
}

fn rectangle(body: &mut String, [x, y, width, height]: [f64; 4], color: &str) {
    let place = format!(r#"x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}""#);
    writeln!(body, r#"<rect {place} fill="{color}"/>"#).ok();
}

/// Returns an SVG image with a white background, because black text is unreadable on dark pages.
fn image(title: &str, height: f64, body: &str) -> String {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">
<rect width="{WIDTH}" height="{height}" fill="white"/>
<text x="12" y="24" font-size="15" font-weight="bold">{title}</text>
{body}</svg>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_bar_has_the_full_width() {
        let chart = bars("t", &[("ours", 1.0), ("client-go", 4.0)]);
        assert!(chart.contains(r#"width="87.5""#) && chart.contains(r#"width="350.0""#), "{chart}");
    }

    #[test]
    fn line_ends_where_values_end() {
        let chart = lines("t", &[("ours", vec![Some(1.0), Some(10.0), None, None])]);
        assert!(chart.contains(r#"points="70.0,350.0 203.3,50.0""#), "{chart}");
    }

    #[test]
    fn line_omits_values_that_are_not_positive() {
        let chart = lines("t", &[("ours", vec![Some(0.0), Some(1.0), Some(10.0), Some(-1.0)])]);
        assert!(chart.contains(r#"points="203.3,350.0 336.7,50.0""#), "{chart}");
    }
}
