//! Tests of the screen: texts, selection, order, filter and sizes. The screen is drawn in memory.

use std::time::Duration;

use ratatui::style::Color;

use super::*;
use crate::client::Failure;
use crate::data::Overview;
use crate::view::plain;

const FORBIDDEN: &str = "forbidden: failed to list secrets: 403 Forbidden; grant \"list\" and \"watch\"";

fn mixed() -> App {
    app(&[
        informer("pods"),
        with(
            "secrets",
            &json!({ "health": "forbidden", "healthText": FORBIDDEN, "synced": false, "lastEventMs": null }),
        ),
        with("nodes", &json!({ "objects": 7, "queued": 9, "quarantined": 1 })),
    ])
}

fn details(app: &mut App, id: &str, document: Value) {
    app.update(Update::Details(id.to_owned(), Ok(serde_json::from_value(document).expect("details"))));
}

#[test]
fn unhealthy_informer_is_first_with_its_reason() {
    let mut app = mixed();
    let screen = lines(&mut app, 120, 30);
    assert_has(&screen, "2 of 3 informers live, 1 forbidden · 1 not synced · 2,475 objects");
    assert_eq!(names(&mut app), ["secrets", "nodes", "pods"]);
    // The table cuts the reason, and the pane below the table has the whole reason.
    assert_has(&screen, "forbidden: failed to list sec");
    assert_has(&screen, &format!("{FORBIDDEN}, not synced"));
    assert_has(&screen, "live, 1 quarantined");
}

#[test]
fn selected_informer_shows_handlers_and_details() {
    let mut app = mixed();
    press(&mut app, &[KeyCode::End]);
    assert_eq!(app.wanted().informer.as_deref(), Some("pods (Pod)"));
    let document = json!({
        "recentLists": [{ "cause": "expired: too old", "ageMs": 61_000, "tookMs": 40, "objects": 2000 }],
        "failuresByCause": { "timeout": 3 },
        "quarantinedObjects": [{ "key": null, "error": "no name" }, { "key": "shop/bad", "error": "invalid" }],
        "namespaces": [{ "name": "shop", "healthText": "live" }],
    });
    details(&mut app, "pods (Pod)", document);
    let screen = lines(&mut app, 100, 40);
    for expected in [
        "── pods ──",
        "live, last event 250 ms ago",
        "Pod · 1,234 objects · ≈ 2.0 MB as JSON · watermark 50",
        "1 added, 2 modified, 3 deleted, 4 bookmarks · 1 list, 1 watch",
        "billing        0     10     2.5 ms         12 ms          0       0",
        "(no readable name): no name",
        "shop/bad: invalid",
        "1 min ago  2,000 objects  in 40 ms  expired: too old",
        "timeout: 3",
        "shop: live",
    ] {
        assert_has(&screen, expected);
    }
    press(&mut app, &[KeyCode::Up]);
    assert!(
        !lines(&mut app, 100, 40).join("\n").contains("too old"),
        "these are details of another informer"
    );
}

#[test]
fn lag_is_that_of_the_slowest_handler() {
    let handlers = json!({ "handlers": [{ "name": "a", "pending": 7 }, { "name": "b", "pending": 4321 }] });
    let screen = lines(&mut app(&[with("pods", &handlers)]), 120, 20);
    let row = screen.iter().find(|line| line.starts_with("pods")).expect("a row");
    assert!(row.contains(" 4,321 "), "{row}");
    let behind = json!({ "watermark": "50", "received": "90" });
    assert_has(&lines(&mut app(&[with("pods", &behind)]), 120, 20), "watermark 50, received 90");
}

#[test]
fn controllers_show_failing_and_parked_keys() {
    let mut app = app(&[informer("pods")]);
    let controller = json!({
        "name": "zones", "queued": 12, "active": 2, "succeeded": 345, "failed": 6, "parkedNow": 1, "longestMs": 20,
        "failedKeys": [{ "key": "shop/web", "failure": "failed: no zone", "failures": 4, "retryMs": 5000 }],
        "parkedKeys": [{ "key": "shop/db", "ageMs": 3000 }],
    });
    let document = json!({ "at": 1, "informers": [], "controllers": [controller] });
    app.update(Update::Overview(Ok(serde_json::from_value(document).expect("an overview"))));
    let screen = lines(&mut app, 100, 30);
    assert_has(&screen, "zones           12       2       1        345       6         20 ms");
    assert_has(&screen, "zones: shop/web has 4 failures, retry in 5.0 s: failed: no zone");
    assert_has(&screen, "zones: shop/db is parked for 3.0 s");
    assert_has(&screen, "the factory has no informers");
    assert!(plain(&app).contains("zones: shop/web has 4 failures"));
}

#[test]
fn rest_of_a_long_list_is_counted_from_the_total() {
    let mut app = app(&[with("pods", &json!({ "quarantined": 10_000 }))]);
    let objects: Vec<_> =
        (0..200).map(|number| json!({ "key": format!("shop/{number}"), "error": "bad" })).collect();
    details(&mut app, "pods (Pod)", json!({ "quarantinedObjects": objects }));
    assert_has(&lines(&mut app, 100, 40), "and 9,995 more quarantined objects");

    let keys = |number: usize| vec![json!({ "key": "shop/web" }); number];
    let controller = |name: &str, parked: u64, keys: [Vec<Value>; 2]| {
        let [parked_keys, failed_keys] = keys;
        json!({ "name": name, "parkedNow": parked, "parkedKeys": parked_keys, "failedKeys": failed_keys })
    };
    let zones = controller("zones", 1_000, [keys(256), keys(256)]);
    let disks = controller("disks", 4, [keys(4), keys(5)]);
    let document = json!({ "at": 1, "informers": [], "controllers": [zones, disks] });
    app.update(Update::Overview(Ok(serde_json::from_value(document).expect("an overview"))));
    let output = plain(&app);
    for expected in [
        "zones: and at least 253 more failing keys\n",
        "zones: and 997 more parked keys\n",
        "disks: and 2 more failing keys\n",
        "disks: and 1 more parked key\n",
    ] {
        assert!(output.contains(expected), "no {expected:?} in\n{output}");
    }
}

#[test]
fn keys_choose_the_column_and_the_direction() {
    let mut app = mixed();
    // The column after HEALTH is the first one.
    type_text(&mut app, "s");
    assert_eq!(names(&mut app), ["nodes", "pods", "secrets"]);
    assert_has(&lines(&mut app, 120, 30), "INFORMER▲");
    type_text(&mut app, ">>");
    assert_eq!(names(&mut app), ["nodes", "pods", "secrets"]);
    assert_has(&lines(&mut app, 120, 30), "EVENTS/S▼");
    type_text(&mut app, "<r");
    assert_eq!(names(&mut app), ["nodes", "pods", "secrets"]);
    assert_has(&lines(&mut app, 120, 30), "OBJECTS▲");
    type_text(&mut app, "r");
    assert_eq!(names(&mut app), ["pods", "secrets", "nodes"]);
}

#[test]
fn selection_stays_with_its_informer_when_rows_move() {
    let mut app = mixed();
    press(&mut app, &[KeyCode::Down]);
    assert_eq!(app.wanted().informer.as_deref(), Some("nodes (Pod)"));
    type_text(&mut app, "sr");
    app.update(overview(2_000, &[with("nodes", &json!({ "health": "connecting" })), informer("pods")]));
    assert_eq!(app.wanted().informer.as_deref(), Some("nodes (Pod)"));
    app.update(overview(3_000, &[informer("pods")]));
    assert_eq!(app.wanted().informer.as_deref(), Some("pods (Pod)"));
}

#[test]
fn filter_hides_informers_without_its_words() {
    let mut app = mixed();
    type_text(&mut app, "/POD");
    assert_has(&lines(&mut app, 100, 30), "filter: POD█  Enter keeps it");
    press(&mut app, &[KeyCode::Enter]);
    // The filter also matches the type of the objects, which is `Pod` for all informers.
    assert_eq!(names(&mut app).len(), 3);
    type_text(&mut app, "/ forb");
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(names(&mut app), ["secrets"]);
    assert_has(&lines(&mut app, 100, 30), "filter: POD forb (Esc removes it) · 1 of 1");
    type_text(&mut app, "/xy");
    press(&mut app, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_has(&lines(&mut app, 100, 30), "no informer matches");
    press(&mut app, &[KeyCode::Esc]);
    assert_eq!((names(&mut app).len(), app.is_done), (3, false));
    press(&mut app, &[KeyCode::Esc]);
    assert!(app.is_done);
}

#[test]
fn narrow_screen_keeps_name_and_health() {
    let mut app = mixed();
    let screen = lines(&mut app, 60, 20);
    let head = screen.iter().find(|line| line.starts_with("INFORMER")).expect("titles");
    assert!(head.contains("EVENTS/S") && head.ends_with("HEALTH▼"), "{head}");
    let secrets = screen.iter().find(|line| line.starts_with("secrets")).expect("a row");
    assert!(secrets.contains("forbidden: failed") && secrets.ends_with('…'), "{secrets}");
    // The pane has the whole reason.
    let pane = screen.join(" ");
    assert!(pane.contains("grant \"list\" and \"watch\""), "{pane}");
}

#[test]
fn screen_of_any_size_is_drawn() {
    let mut app = mixed();
    details(&mut app, "secrets (Pod)", json!({ "recentLists": [{ "cause": "initial" }] }));
    for (columns, rows) in (0..40).flat_map(|columns| (0..16).map(move |rows| (columns, rows))) {
        drawn(&mut app, columns, rows);
    }
}

#[test]
fn list_of_200_informers_scrolls_to_the_selection() {
    let all: Vec<_> = (0..200).map(|number| informer(&format!("kind-{number:03}"))).collect();
    let mut app = app(&all);
    assert_has(&lines(&mut app, 100, 30), "kind-000");
    press(&mut app, &[KeyCode::End]);
    let screen = lines(&mut app, 100, 30);
    assert_has(&screen, "kind-199");
    assert_has(&screen, "200 of 200");
    assert!(!screen.join("\n").contains("kind-000"));
    let page = app.page;
    press(&mut app, &[KeyCode::PageUp, KeyCode::Char('k')]);
    assert_eq!(app.wanted().informer, Some(format!("kind-{:03} (Pod)", 198 - page)));
    press(&mut app, &[KeyCode::Home, KeyCode::Char('j')]);
    assert_has(&lines(&mut app, 100, 30), "kind-001");
}

#[test]
fn escape_sequences_of_the_server_are_removed() {
    let hostile = "pods\u{1b}[2J\u{1b}]0;title\u{7}\r\n\u{9b}31m\u{202e}x";
    let mut app = app(&[with(hostile, &json!({ "health": "backing-off", "healthText": hostile }))]);
    details(&mut app, &format!("{hostile} (Pod)"), json!({ "recentLists": [{ "cause": hostile }] }));
    app.update(Update::Overview(Err(Failure::missing(hostile))));
    let screen = lines(&mut app, 100, 30).join("\n");
    let output = plain(&app);
    for text in [&screen, &output] {
        assert!(text.contains("pods]0;title  31mx"), "{text}");
        let is_allowed = |letter: char| letter == '\n' || !(letter.is_control() || letter == '\u{202e}');
        assert!(text.chars().all(is_allowed), "{text:?}");
    }
}

#[test]
fn informers_of_one_resource_are_told_apart() {
    let metadata = json!({ "id": "pods (Metadata)", "object": "Metadata" });
    let mut app = app(&[informer("pods"), with("pods", &metadata), informer("nodes")]);
    assert_eq!(names(&mut app), ["nodes", "pods (Metadata)", "pods (Pod)"]);
}

#[test]
fn rates_come_from_totals_and_server_time() {
    let counters = |added: u64, delivered: u64| {
        with(
            "pods",
            &json!({ "events": { "added": added, "bookmarks": 99 }, "handlers": [{ "delivered": delivered }] }),
        )
    };
    let mut app = app(&[counters(100, 10)]);
    assert_has(&lines(&mut app, 100, 30), "– events/s");
    app.update(overview(3_000, &[counters(150, 14)]));
    let screen = lines(&mut app, 100, 30);
    assert_has(&screen, " 25 events/s");
    assert_has(&screen, "2.0 handler calls/s");
}

#[test]
fn restarted_program_has_no_negative_rates() {
    let added = |number: u64| with("pods", &json!({ "events": { "added": number } }));
    let mut app = app(&[added(1_000)]);
    // The inspector is younger than before, so the program has restarted and its counters began at zero.
    app.update(overview(500, &[added(3)]));
    assert_has(&lines(&mut app, 100, 30), "– events/s");
    // The program has not restarted, but a new informer with the same identifier and lower counters has
    // replaced the old one.
    app.update(overview(1_500, &[added(1)]));
    assert_has(&lines(&mut app, 100, 30), " 0 events/s");
}

#[tokio::test(start_paused = true)]
async fn program_restarted_between_readings_has_no_rates() {
    let added = |number: u64| with("pods", &json!({ "events": { "added": number } }));
    let mut app = app(&[added(100)]);
    tokio::time::advance(Duration::from_secs(600)).await;
    // Without a restart, the inspector would be more than 600 seconds old.
    app.update(overview(540_000, &[added(5_000)]));
    assert_has(&lines(&mut app, 100, 30), "– events/s");
    tokio::time::advance(Duration::from_secs(600)).await;
    app.update(overview(1_140_000, &[added(11_000)]));
    assert_has(&lines(&mut app, 100, 30), " 10 events/s");
}

#[test]
fn document_of_another_version_is_read() {
    let document =
        json!({ "at": 1, "informers": [{ "id": "pods", "new": [1] }, {}], "later": { "a": null } });
    let overview: Overview = serde_json::from_value(document).expect("an overview");
    let mut app = App::new(String::new());
    app.update(Update::Overview(Ok(overview)));
    assert_has(&lines(&mut app, 100, 30), "0 of 2 informers live");
    assert!(serde_json::from_value::<Overview>(json!({ "at": 1 })).is_err());
}

#[test]
fn colors_are_those_of_the_severity_and_can_be_off() {
    let mut app = mixed();
    let colors = |screen: &TestBackend| {
        let cells = screen.buffer().content().iter().map(|cell| cell.fg);
        let mut colors: Vec<_> = cells.filter(|color| *color != Color::Reset).collect();
        colors.dedup();
        colors
    };
    assert_eq!(colors(&drawn(&mut app, 100, 30)), [Color::Red, Color::Yellow, Color::Green]);
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("infallible");
    terminal.draw(|frame| draw(frame, &mut app, false)).expect("infallible");
    assert_eq!(colors(terminal.backend()), []);
}

#[test]
fn pause_is_shown_and_stops_the_reader() {
    let mut app = mixed();
    app.update(Update::Overview(Err(Failure::missing("Connection refused"))));
    type_text(&mut app, "p");
    assert!(app.wanted().is_paused);
    assert_has(&lines(&mut app, 100, 30), "paused, last read 0 s ago");
    type_text(&mut app, "p");
    assert!(!app.wanted().is_paused);
    assert_has(&lines(&mut app, 100, 30), "retrying: Connection refused");
}

#[test]
fn help_explains_keys_and_columns() {
    let mut app = mixed();
    type_text(&mut app, "?");
    let screen = lines(&mut app, 100, 30);
    assert_has(&screen, "sort by the next or the previous column");
    assert_has(&screen, "LAG                events that the slowest handler has not processed yet");
    type_text(&mut app, "q");
    assert!(!app.is_help && !app.is_done);
    app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(app.is_done);
}

#[test]
fn plain_output_has_all_columns_and_whole_texts() {
    let output = plain(&mixed());
    let expected =
        "INFORMER  OBJECTS  EVENTS/S  QUEUED  LAG  LAST EVENT  QUARANTINED  LISTS  FAILURES  HEALTH▼";
    assert!(output.contains(expected), "{output}");
    assert!(output.contains(&format!("{FORBIDDEN}\n")), "{output}");
}
