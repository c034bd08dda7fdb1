//! [`App`]: the state of the screen. Pressed keys and responses of the inspector change this state.

use std::collections::HashMap;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::ListState;
use tokio::time::Instant;

use crate::client::Failure;
use crate::data::{Controller, Details, History, Informer, Overview, Text};
use crate::table::{Order, Row};

/// The documents that the task `terminal::read` requests from the inspector after each interval:
/// the overview, and the details of one informer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The identifier of the informer whose details are requested.
    pub(crate) informer: Option<String>,
    /// Whether requests are paused. When another informer is selected, its details are still
    /// requested, once.
    pub(crate) is_paused: bool,
}

/// A response of the inspector, or the failure of a request.
#[derive(Debug)]
pub(crate) enum Update {
    Overview(Result<Overview, Failure>),
    /// The details of the informer with this identifier.
    Details(String, Result<Details, Failure>),
}

#[derive(Debug, Default)]
pub(crate) struct App {
    pub(crate) address: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) memory: Option<u64>,
    /// The details of the informer with this identifier, or the reason why their request failed.
    /// The informer is possibly no longer selected.
    details: Option<(String, Result<Details, Text>)>,
    /// The reason why the last request for the overview failed.
    pub(crate) lost: Option<Text>,
    history: History,
    read_at: Option<Instant>,
    pub(crate) order: Order,
    pub(crate) filter: String,
    pub(crate) is_typing: bool,
    pub(crate) is_paused: bool,
    pub(crate) is_help: bool,
    pub(crate) is_done: bool,
    selected: Option<String>,
    /// Position of the selected row, and the first row on the screen.
    pub(crate) list: ListState,
    /// The number of table rows that fit on the screen.
    pub(crate) page: usize,
}

impl App {
    pub(crate) fn new(address: String) -> Self {
        Self { address, ..Self::default() }
    }

    pub(crate) fn update(&mut self, update: Update) {
        match update {
            Update::Overview(Ok(overview)) => self.show(overview),
            Update::Overview(Err(failure)) => self.lost = Some(failure.reason),
            // After a failed request, the screen keeps the last details, as it keeps all other data.
            Update::Details(id, Err(_)) if self.has_details(&id) => {}
            Update::Details(id, details) => {
                self.details = Some((id, details.map_err(|failure| failure.reason)));
            }
        }
    }

    fn has_details(&self, id: &str) -> bool {
        self.details.as_ref().is_some_and(|(other, details)| other == id && details.is_ok())
    }

    fn show(&mut self, overview: Overview) {
        let age = self.age();
        let rates = self.history.rates(&overview, age);
        let mut seen = HashMap::<Text, usize>::new();
        for informer in &overview.informers {
            *seen.entry(informer.description.clone()).or_default() += 1;
        }
        let row = |informer: Informer| Row {
            name: match seen[&informer.description] {
                1 => informer.description.to_string(),
                // Several informers have this description, but their identifiers differ.
                _ => Text::new(&informer.id).to_string(),
            },
            rates: rates.get(&informer.id).copied().unwrap_or_default(),
            informer,
        };
        self.rows = overview.informers.into_iter().map(row).collect();
        self.controllers = overview.controllers;
        self.memory = overview.memory;
        self.lost = None;
        self.read_at = Some(Instant::now());
        if !self.rows.iter().any(|row| Some(&row.informer.id) == self.selected.as_ref()) {
            // Select the informer of the first row. The selection then stays with this informer, even
            // if another row becomes the first.
            self.selected = None;
            self.step(0);
        }
    }

    /// Returns the time since the last overview was received; zero before the first one.
    pub(crate) fn age(&self) -> Duration {
        self.read_at.map_or(Duration::ZERO, |at| at.elapsed())
    }

    /// Returns the rows that match the filter, in the selected order. A row matches if each word
    /// of the filter is in its name, object type, health or state.
    pub(crate) fn visible(&self) -> Vec<&Row> {
        let filter = self.filter.to_lowercase();
        let is_match = |row: &&Row| {
            let informer = &row.informer;
            let text =
                format!("{} {} {} {}", row.name, &*informer.object, &*informer.health, &*informer.state);
            let text = text.to_lowercase();
            filter.split_whitespace().all(|word| text.contains(word))
        };
        let mut rows: Vec<_> = self.rows.iter().filter(is_match).collect();
        self.order.sort(&mut rows);
        rows
    }

    /// Returns the position of the selected row, or of the first row if the selected informer is
    /// not visible.
    pub(crate) fn position(&self, visible: &[&Row]) -> Option<usize> {
        let found = visible.iter().position(|row| Some(&row.informer.id) == self.selected.as_ref());
        found.or((!visible.is_empty()).then_some(0))
    }

    /// Returns the selected row and the details of its informer; `None` if no row is visible. The
    /// details are `None` until their request has succeeded or failed.
    pub(crate) fn selected(&self) -> Option<(Row, Option<&Result<Details, Text>>)> {
        let visible = self.visible();
        let row = visible[self.position(&visible)?];
        let details = self.details.as_ref().filter(|(id, _)| *id == row.informer.id);
        Some((row.clone(), details.map(|(_, details)| details)))
    }

    pub(crate) fn wanted(&self) -> Wanted {
        let informer = self.selected().map(|(row, _)| row.informer.id);
        Wanted { informer, is_paused: self.is_paused }
    }

    /// Moves the selection down by a number of visible rows, or up if the number is negative.
    fn step(&mut self, rows: isize) {
        let visible = self.visible();
        let Some(position) = self.position(&visible) else { return };
        let position = position.saturating_add_signed(rows).min(visible.len() - 1);
        self.selected = Some(visible[position].informer.id.clone());
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => self.is_done = true,
            _ if self.is_typing => self.type_filter(key.code),
            // Any key closes the help.
            _ if self.is_help => self.is_help = false,
            code => self.command(code),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
    }

    fn command(&mut self, code: KeyCode) {
        let page = isize::try_from(self.page.max(1)).unwrap_or(isize::MAX);
        match code {
            KeyCode::Esc if !self.filter.is_empty() => self.filter.clear(),
            KeyCode::Char('q') | KeyCode::Esc => self.is_done = true,
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Home => self.step(isize::MIN),
            KeyCode::End => self.step(isize::MAX),
            KeyCode::Char('s' | '>') => self.sort_by(true),
            KeyCode::Char('<') => self.sort_by(false),
            KeyCode::Char('r') => self.order.is_reversed = !self.order.is_reversed,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('?') => self.is_help = true,
            _ => {}
        }
    }

    fn sort_by(&mut self, is_right: bool) {
        self.order = Order { column: self.order.column.next(is_right), is_reversed: false };
    }
}
