//! Draws the screen: the header, the table of informers, the panes below it, and the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{List, ListItem, Paragraph};

use crate::app::App;
use crate::data::Severity;
use crate::details;
use crate::format::{bytes, count, counted, cut, duration, flow, rate, width};
use crate::table::{Layout, Row, health};

/// The minimum height of the informer's pane, in lines.
const MIN_PANE: usize = 4;
/// While connected and not paused, the header shows the age of the data only if the age is at least
/// this number of seconds.
const OLD: u64 = 2;

const KEYS: &str = "q quit · s sort · r reverse · / filter · p pause · ? help";

const HELP: [&str; 18] = [
    "q, Esc, Ctrl-C     quit; Esc first removes a filter",
    "Up, Down, k, j     select an informer",
    "PgUp, PgDn         select an informer of another page",
    "Home, End          select the first or the last informer",
    "s, > and <         sort by the next or the previous column",
    "r                  reverse the order",
    "/                  show informers whose name or health has these words",
    "p                  pause or continue reading",
    "",
    "EVENTS/S           changes from the server, without bookmarks",
    "QUEUED             objects with changes or resyncs that are not processed yet",
    "LAG                events that the slowest handler has not processed yet",
    "LAST EVENT         age of the last event, bookmark or list",
    "QUARANTINED        objects that could not be decoded or transformed",
    "LISTS              complete lists: the first one, and each relist",
    "FAILURES           failed requests and interrupted watches",
    "",
    "Any key closes this help.",
];

/// Draws the whole screen. If `has_colors` is `false`, uses only bold, dim and reversed text.
pub(crate) fn draw(frame: &mut Frame<'_>, app: &mut App, has_colors: bool) {
    let screen = frame.area();
    let columns = screen.width.into();
    let emphasis = if app.lost.is_some() { Modifier::BOLD } else { Modifier::empty() };
    let header: Vec<_> = header(app, columns).into_iter().map(|line| Line::styled(line, emphasis)).collect();
    let [header_area, rest] = split(screen, header.len());
    let [body, footer] = split(rest, usize::from(rest.height).saturating_sub(1));
    frame.render_widget(Paragraph::new(header), header_area);
    frame.render_widget(Line::styled(footer_text(app), Modifier::DIM), footer);
    if app.is_help {
        frame.render_widget(Paragraph::new(HELP.map(Line::raw).to_vec()), split(body, 1)[1]);
        return;
    }
    let controllers = pane("controllers", details::controllers(&app.controllers, columns), columns);
    let informer = app.selected().map_or_else(Vec::new, |(row, details)| {
        pane(&row.name, details::informer(&row, details, columns), columns)
    });
    let [table, below] = split(body, table_height(app, body, informer.len(), controllers.len()));
    let controllers_height = controllers.len().min(usize::from(body.height) / 3);
    let [informer_area, controllers_area] =
        split(below, usize::from(below.height).saturating_sub(controllers_height));
    draw_table(frame, table, app, has_colors);
    for (lines, area) in [(informer, informer_area), (controllers, controllers_area)] {
        frame.render_widget(Paragraph::new(shortened(lines, area.height.into())), area);
    }
}

/// Splits an area into its first `lines` lines and the rest.
fn split(area: Rect, lines: usize) -> [Rect; 2] {
    let height = u16::try_from(lines).unwrap_or(u16::MAX).min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    [Rect { height, ..area }, rest]
}

/// Returns the number of lines for the table. `informer` and `controllers` are the numbers of lines
/// of the panes below the table.
fn table_height(app: &App, body: Rect, informer: usize, controllers: usize) -> usize {
    let body = usize::from(body.height);
    let free = body.saturating_sub(controllers.min(body / 3));
    // Two lines are added to the rows: the titles of the columns, and an empty line above the
    // panes.
    let height = (app.visible().len() + 2).min(free.saturating_sub(informer).max(free / 2));
    // Without enough room for the informer's pane, the table hides both panes.
    if free - height < MIN_PANE { body } else { height }
}

/// Returns a line with the title of a pane, followed by `lines`; nothing if `lines` is empty.
fn pane(title: &str, lines: Vec<Line<'static>>, columns: usize) -> Vec<Line<'static>> {
    if lines.is_empty() {
        return lines;
    }
    let title = cut(&format!("── {title} "), columns);
    let rule = "─".repeat(columns.saturating_sub(width(&title)));
    std::iter::once(Line::raw(title + &rule)).chain(lines).collect()
}

/// Cuts lines to a height, unless it is 0. If lines are hidden, the last line has their number.
fn shortened(mut lines: Vec<Line<'static>>, height: usize) -> Vec<Line<'static>> {
    if lines.len() > height && height > 0 {
        let hidden = lines.len() - height + 1;
        lines.truncate(height - 1);
        lines.push(Line::styled(format!("… {hidden} more lines: enlarge the terminal"), Modifier::DIM));
    }
    lines
}

/// Returns the first lines of the screen: the state of the connection, the health of the informers,
/// and sums such as the number of objects.
pub(crate) fn header(app: &App, columns: usize) -> Vec<String> {
    let age = match app.age().as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => duration(seconds as f64 * 1000.0),
    };
    let connection = match &app.lost {
        _ if app.is_paused => format!("paused, last read {age} ago"),
        Some(reason) => format!("no connection, last read {age} ago, retrying: {}", &**reason),
        None if app.age().as_secs() >= OLD => format!("connected, read {age} ago"),
        None => "connected".to_owned(),
    };
    let mut lines = flow([&*format!("informer-top {}", app.address), &connection], " · ", columns);
    let sum = |value: fn(&Row) -> u64| app.rows.iter().map(value).sum();
    let unsynced = app.rows.iter().filter(|row| !row.informer.synced).count();
    let rates = app.rows.iter().filter_map(|row| row.rates.events).reduce(|a, b| a + b);
    let mut parts = vec![health(&app.rows)];
    parts.push(if unsynced == 0 { "all synced".to_owned() } else { format!("{unsynced} not synced") });
    parts.push(counted(sum(|row| row.informer.objects), "object"));
    parts.push(format!("{} events/s", rate(rates)));
    parts.push(format!("{} queued", count(sum(|row| row.informer.queued))));
    parts.extend(app.memory.map(|memory| format!("process memory {}", bytes(memory))));
    lines.extend(flow(parts.iter().map(String::as_str), " · ", columns));
    lines.push(String::new());
    lines
}

fn footer_text(app: &App) -> String {
    let filter = &app.filter;
    if app.is_typing {
        return format!("filter: {filter}█  Enter keeps it, Esc removes it");
    }
    let visible = app.visible();
    let position = app.position(&visible).map_or(0, |position| position + 1);
    let filter =
        if filter.is_empty() { String::new() } else { format!("filter: {filter} (Esc removes it) · ") };
    format!("{filter}{position} of {} · {KEYS}", visible.len())
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, app: &mut App, has_colors: bool) {
    let [head, area] = split(area, 1);
    let visible = app.visible();
    let layout = Layout::new(&visible, area.width.into());
    frame.render_widget(Line::styled(layout.head(app.order), Modifier::BOLD), head);
    if visible.is_empty() {
        let reason = if app.rows.is_empty() { "the factory has no informers" } else { "no informer matches" };
        frame.render_widget(Line::raw(reason), area);
    }
    let items: Vec<_> = visible
        .iter()
        .map(|row| {
            let (cells, health) = layout.cells(row);
            let color = if has_colors { color(row) } else { Style::new() };
            ListItem::new(Line::from(vec![Span::raw(cells), Span::styled(health, color)]))
        })
        .collect();
    let position = app.position(&visible);
    app.list.select(position);
    app.page = area.height.into();
    let list = List::new(items).highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(list, area, &mut app.list);
}

fn color(row: &Row) -> Style {
    match row.informer.severity() {
        Severity::Good => Style::new().fg(Color::Green),
        Severity::Busy => Style::new().fg(Color::Yellow),
        Severity::Bad => Style::new().fg(Color::Red),
    }
}

/// Returns the state of all informers and controllers as plain text, whose lines are not cut.
pub(crate) fn plain(app: &App) -> String {
    let visible = app.visible();
    let layout = Layout::complete(&visible);
    let mut lines = header(app, usize::MAX);
    lines.push(layout.head(app.order));
    lines.extend(visible.iter().map(|row| {
        let (cells, health) = layout.cells(row);
        cells + &health
    }));
    let controllers = details::controllers(&app.controllers, usize::MAX);
    if !controllers.is_empty() {
        lines.push(String::new());
    }
    lines.extend(controllers.iter().map(ToString::to_string));
    lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}
