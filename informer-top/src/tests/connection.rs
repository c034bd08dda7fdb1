//! Tests of the connection to a real inspector, and of the loop of the terminal.

use std::time::Duration;

use informer_factory::SharedInformerFactory;
use informer_monitor::Inspector;
use informer_testing::Simulator;
use ratatui::crossterm::event::Event;
use tokio::sync::{mpsc, watch};

use super::*;
use crate::app::Wanted;
use crate::client::{Address, Client, Failure};
use crate::terminal::{read, show};
use crate::view::header;

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes less than a minute")
}

/// Receives updates until the header contains the expected text.
async fn until(app: &mut App, updates: &mut mpsc::Receiver<Update>, expected: &str) {
    let wait = async {
        while !header(app, 200).join("\n").contains(expected) {
            app.update(updates.recv().await.expect("the reader runs"));
        }
    };
    soon(wait).await;
}

#[cfg(unix)]
#[tokio::test]
async fn lost_connection_is_retried_until_it_is_back() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let _pods = factory.core().v1().pods();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("inspector.sock");
    let client = Client::new(Address::Unix(path.clone()), None).expect("no token");
    let (wanted, wants) = watch::channel(Wanted::default());
    let (sender, mut updates) = mpsc::channel(1);
    let reader = tokio::spawn(read(client, Duration::from_millis(10), wants, sender));
    let mut app = App::new(format!("unix:{}", path.display()));

    until(&mut app, &mut updates, "no connection").await;
    for objects in ["0 objects", "0 objects"] {
        let server = tokio::spawn(Inspector::new(&factory).serve_unix(path.clone()));
        until(&mut app, &mut updates, "connected").await;
        let screen = lines(&mut app, 100, 30);
        assert_has(&screen, objects);
        assert_has(&screen, "not started");
        server.abort();
        assert!(server.await.is_err_and(|error| error.is_cancelled()));
        until(&mut app, &mut updates, "retrying: Connection refused").await;
        assert_has(&lines(&mut app, 100, 30), "not started");
    }
    // The reader ends when the screen drops its channels.
    drop((updates, wanted));
    assert!(soon(reader).await.expect("no panic").is_none());
}

#[tokio::test]
async fn details_of_a_new_selection_are_read_at_once() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let _informers = (factory.core().v1().pods(), factory.core().v1().nodes());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = Address::Tcp(listener.local_addr().expect("an address").to_string());
    let server = tokio::spawn(Inspector::new(&factory).serve(listener));
    let (wanted, wants) = watch::channel(Wanted::default());
    let (sender, mut updates) = mpsc::channel(1);
    // The interval does not elapse during the test, so only a selection causes a request.
    let client = Client::new(address, None).expect("no token");
    let reader = tokio::spawn(read(client, Duration::from_secs(3600), wants, sender));
    for id in ["nodes (Node)", "pods (Pod)"] {
        wanted.send_replace(Wanted { informer: Some(id.to_owned()), is_paused: true });
        let update = soon(updates.recv()).await.expect("the reader runs");
        assert!(matches!(&update, Update::Details(read, Ok(_)) if read == id), "{update:?}");
    }
    wanted.send_replace(Wanted { informer: Some("gone (Pod)".to_owned()), is_paused: false });
    let update = soon(updates.recv()).await.expect("the reader runs");
    assert!(matches!(&update, Update::Details(_, Err(failure)) if failure.reason.contains("no informer")));
    reader.abort();
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn screen_shows_updates_until_a_key_ends_it() {
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).expect("infallible");
    let mut app = app(&[informer("pods")]);
    let (updates, received) = mpsc::channel(2);
    let (keys, events) = mpsc::channel(2);
    let (wanted, wants) = watch::channel(Wanted::default());
    let type_keys = async {
        updates.send(overview(2_000, &[informer("pods"), informer("secrets")])).await.expect("it is shown");
        updates
            .send(Update::Overview(Err(Failure::missing("Connection refused"))))
            .await
            .expect("it is shown");
        // The age of the data is drawn even if no update is received and no key is pressed.
        tokio::time::sleep(Duration::from_secs(5)).await;
        for code in [KeyCode::Down, KeyCode::Char('q')] {
            keys.send(Event::Key(code.into())).await.expect("the screen is open");
        }
    };
    let shown = show(&mut terminal, &mut app, true, received, events, &wanted);
    let (outcome, ()) = soon(async { tokio::join!(shown, type_keys) }).await;
    outcome.expect("the key ends it");
    let screen = text(terminal.backend());
    assert_has(&screen, "no connection, last read 5 s ago, retrying: Connection refused");
    assert_has(&screen, "secrets");
    let expected = Wanted { informer: Some("secrets (Pod)".to_owned()), is_paused: false };
    assert_eq!(*wants.borrow(), expected);
}

#[test]
fn address_is_a_url_a_host_or_a_socket() {
    let parsed = |text: &str| Address::parse(text).map(|address| address.to_string());
    for (text, expected) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/inspect/", "http://127.0.0.1:8080"),
        ("localhost:81", "http://localhost:81"),
        ("http://[::1]/", "http://[::1]:80"),
        ("http://[::1]:81/", "http://[::1]:81"),
        #[cfg(unix)]
        ("unix:/run/a.sock", "unix:/run/a.sock"),
    ] {
        assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
    }
    for (text, reason) in [
        ("https://example.com", "only http:// is supported"),
        ("http://localhost/?token=abc", "set INFORMER_TOP_TOKEN"),
        ("http://localhost/metrics", "always /inspect/"),
        ("http://", "use http://HOST:PORT"),
    ] {
        let error = parsed(text).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn address_with_an_invalid_port_is_an_error() {
    for text in ["http://127.0.0.1:80800", "localhost:", "http://[::1]:/", "http://[::1]81"] {
        let error = Address::parse(text).expect_err(text);
        assert!(error.contains("invalid port; use http://HOST:PORT"), "{text}: {error}");
    }
}
