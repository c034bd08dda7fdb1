//! The terminal: receives responses of the inspector and pressed keys, and draws the screen after
//! each of them.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::Backend;
use ratatui::crossterm::event::{Event, KeyEventKind};
use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;

use crate::app::{App, Update, Wanted};
use crate::client::Client;
use crate::view::draw;

/// The screen is drawn at this interval even without changes, so that the age of the data is
/// correct.
const REDRAW: Duration = Duration::from_secs(1);

/// Shows the informers until a key, an error or (on Unix) SIGTERM ends the program. In these cases
/// and after a panic, the terminal is restored.
pub(crate) async fn run(mut app: App, client: Client, interval: Duration) -> Result<(), Box<dyn Error>> {
    let (wanted, wants) = watch::channel(app.wanted());
    let (updates, received) = mpsc::channel(1);
    let reader = tokio::spawn(read(client, interval, wants, updates));
    let has_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &mut app, has_colors, received, events(), &wanted);
    let outcome = tokio::select! {
        outcome = shown => outcome,
        () = terminated() => Ok(()),
    };
    ratatui::restore();
    reader.abort();
    outcome
}

/// Returns the events of the terminal. Reading them blocks, so a separate thread reads them until
/// the program ends.
fn events() -> mpsc::Receiver<Event> {
    let (sender, events) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = ratatui::crossterm::event::read() {
            if sender.blocking_send(event).is_err() {
                break;
            }
        }
    });
    events
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => _ = signal.recv().await,
        // Without a signal handler, the signal ends the program as usual.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// Reads the overview and the details of the selected informer after each interval, except while
/// paused. Reads the details of a newly selected informer at once, or after the current request.
///
/// Returns only if a channel is closed.
pub(crate) async fn read(
    client: Client,
    interval: Duration,
    mut wanted: watch::Receiver<Wanted>,
    updates: mpsc::Sender<Update>,
) -> Option<Infallible> {
    // `main` has already read the first overview.
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = wanted.borrow_and_update().clone();
        if let Some(id) = now.informer {
            let details = client.details(&id).await;
            updates.send(Update::Details(id, details)).await.ok()?;
        }
        tokio::select! {
            changed = wanted.changed() => changed.ok()?,
            _ = ticks.tick(), if !now.is_paused => {
                updates.send(Update::Overview(client.overview().await)).await.ok()?;
            }
        }
    }
}

/// Draws the screen after each update and event, until a key ends the program.
pub(crate) async fn show<B>(
    terminal: &mut Terminal<B>,
    app: &mut App,
    has_colors: bool,
    mut updates: mpsc::Receiver<Update>,
    mut events: mpsc::Receiver<Event>,
    wanted: &watch::Sender<Wanted>,
) -> Result<(), Box<dyn Error>>
where
    B: Backend<Error: 'static>,
{
    let mut redraw = tokio::time::interval(REDRAW);
    while !app.is_done {
        terminal.draw(|frame| draw(frame, app, has_colors))?;
        wanted.send_if_modified(|wanted| {
            let now = app.wanted();
            let is_other = *wanted != now;
            *wanted = now;
            is_other
        });
        tokio::select! {
            biased;
            update = updates.recv() => app.update(update.ok_or("the reader of the inspector ended")?),
            event = events.recv() => {
                let event = event.ok_or("the terminal was closed")?;
                if let Event::Key(key) = event && key.kind == KeyEventKind::Press {
                    app.key(key);
                }
            }
            _ = redraw.tick() => {}
        }
    }
    Ok(())
}
