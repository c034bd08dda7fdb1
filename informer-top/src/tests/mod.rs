//! Tests of the screen and of the connection to an inspector.

mod connection;
mod screen;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use crate::app::{App, Update};
use crate::view::draw;

/// Returns the JSON of a live informer in the inspector's overview.
fn informer(name: &str) -> Value {
    json!({
        "id": format!("{name} (Pod)"), "description": name, "object": "Pod", "state": "running", "synced": true,
        "health": "live", "healthText": "live", "lastEventMs": 250, "objects": 1234, "bytes": 2_000_000, "shown": true,
        "watermark": "50", "received": "50", "queued": 0, "quarantined": 0, "lists": 1, "watches": 1, "failures": 0,
        "events": { "added": 1, "modified": 2, "deleted": 3, "bookmarks": 4, "other": 0 },
        "handlers": [{ "name": "billing", "pending": 0, "delivered": 10, "coalesced": 0, "panicked": 0,
            "busyMs": 25.0, "slowestMs": 12.0 }],
    })
}

/// Returns the JSON of an informer as from [`informer`], but with the values of `fields`.
fn with(name: &str, fields: &Value) -> Value {
    let mut informer = informer(name);
    for (field, value) in fields.as_object().expect("an object") {
        informer[field] = value.clone();
    }
    informer
}

fn overview(at: u64, informers: &[Value]) -> Update {
    let document = json!({ "at": at, "memory": 35_000_000, "informers": informers, "controllers": [] });
    Update::Overview(Ok(serde_json::from_value(document).expect("an overview")))
}

/// Returns the state of the screen after it has received the overview of these informers.
fn app(informers: &[Value]) -> App {
    let mut app = App::new("http://127.0.0.1:8080".to_owned());
    app.update(overview(1_000, informers));
    app
}

fn press(app: &mut App, keys: &[KeyCode]) {
    for code in keys {
        app.key(KeyEvent::new(*code, KeyModifiers::NONE));
    }
}

fn type_text(app: &mut App, text: &str) {
    press(app, &text.chars().map(KeyCode::Char).collect::<Vec<_>>());
}

/// Draws the screen of this size in memory, and returns the drawn screen.
fn drawn(app: &mut App, columns: u16, lines: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("infallible");
    terminal.draw(|frame| draw(frame, app, true)).expect("infallible");
    terminal.backend().clone()
}

/// Draws the screen of this size, and returns its lines without trailing spaces.
fn lines(app: &mut App, columns: u16, lines: u16) -> Vec<String> {
    text(&drawn(app, columns, lines))
}

fn text(screen: &TestBackend) -> Vec<String> {
    let buffer = screen.buffer();
    let width = buffer.area.width.into();
    let rows = buffer.content().chunks(width);
    let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
    rows.map(|cells| line(cells).trim_end().to_owned()).collect()
}

/// Draws the screen, and returns the names of the informers in the order of the table.
fn names(app: &mut App) -> Vec<String> {
    let screen = lines(app, 120, 40);
    let rows = screen.iter().skip_while(|line| !line.starts_with("INFORMER")).skip(1);
    let rows = rows.take_while(|line| !line.is_empty() && !line.starts_with('─'));
    rows.map(|line| line.split("  ").next().unwrap_or_default().to_owned()).collect()
}

#[track_caller]
fn assert_has(screen: &[String], expected: &str) {
    assert!(screen.iter().any(|line| line.contains(expected)), "no {expected:?} in\n{}", screen.join("\n"));
}
