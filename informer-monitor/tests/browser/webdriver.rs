//! A small client of the `WebDriver` protocol: a driver process and one session of a headless browser.
//!
//! The protocol is JSON over HTTP. The usual client crates add fifty packages or more to the
//! workspace, so these tests send their few commands themselves.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// The code of the Tab key. The constants below are the codes of other keys without a character.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";
pub(crate) const ARROW_DOWN: &str = "\u{e015}";
pub(crate) const ARROW_UP: &str = "\u{e013}";

/// The time limit for a condition on the page.
const LIMIT: Duration = Duration::from_secs(30);

/// A headless browser with one window, and its driver. They end when this value is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

impl Browser {
    /// Starts a browser with a window of this size, in CSS pixels.
    pub(crate) async fn start(width: u32, height: u32) -> Self {
        let program = std::env::var("CHROMEDRIVER").unwrap_or_else(|_| "chromedriver".to_owned());
        let mut command = Command::new(&program);
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut driver = command.spawn().unwrap_or_else(|error| {
            panic!(
                "cannot start {program}: {error}; install chromium and chromium-driver, or set CHROMEDRIVER"
            )
        });
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines();
        let port = loop {
            let line = lines.next_line().await.expect("text").expect("the driver prints its port");
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').parse().expect("a port");
            }
        };
        let mut browser = Self { driver, address: ([127, 0, 0, 1], port).into(), session: String::new() };
        // The minimum width of Chromium's windows is 500 pixels, so the size is emulated.
        // Chromium's sandbox does not work for root, which containers often use. The sandbox is not
        // needed, because the page is our own.
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--force-device-scale-factor=1"],
            "mobileEmulation": { "deviceMetrics":
                { "width": width, "height": height, "pixelRatio": 1.0, "touch": false, "mobile": false } },
        });
        let timeouts = json!({ "script": LIMIT.as_millis() as u64 });
        let wanted = json!({ "alwaysMatch": { "goog:chromeOptions": options, "timeouts": timeouts } });
        let created = browser.send("POST", "/session", &json!({ "capabilities": wanted })).await;
        browser.session = created["sessionId"].as_str().expect("a session").to_owned();
        browser
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(self.address).await.expect("the driver listens");
        let request = request(method, path, body);
        stream.write_all(request.as_bytes()).await.expect("the driver reads");
        let response = tokio::time::timeout(2 * LIMIT, response(stream));
        let body = response.await.expect("the driver answers in time").expect("a response");
        let answer: Value = serde_json::from_slice(&body).expect("JSON");
        let value = &answer["value"];
        assert!(value.get("error").is_none(), "{path} failed: {} {}", value["error"], value["message"]);
        value.clone()
    }

    async fn command(&self, path: &str, body: Value) -> Value {
        self.send("POST", &format!("/session/{}/{path}", self.session), &body).await
    }

    pub(crate) async fn open(&self, url: &str) {
        self.command("url", json!({ "url": url })).await;
    }

    /// Returns the value of a JavaScript expression on the page.
    pub(crate) async fn eval(&self, expression: &str) -> Value {
        self.command("execute/sync", json!({ "script": format!("return {expression}"), "args": [] })).await
    }

    /// Waits until a JavaScript expression is true. The page evaluates the expression after each of
    /// its changes, so nothing polls.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!(
            "const done = arguments[0];
             const isMet = () => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }};
             if (isMet()) return done(true);
             const observer = new MutationObserver(() => {{ if (isMet()) {{ observer.disconnect(); done(true); }} }});
             observer.observe(document, {{ subtree: true, childList: true, characterData: true, attributes: true }});
             setTimeout(() => done(document.body.innerText.slice(0, 2000)), {});",
            LIMIT.as_millis() * 9 / 10
        );
        let met = self.command("execute/async", json!({ "script": script, "args": [] })).await;
        assert_eq!(met, json!(true), "the page never met {expression}");
    }

    /// Presses keys on the keyboard, one after the other. They go to the focused element.
    pub(crate) async fn press(&self, keys: &str) {
        let each = keys.chars().map(String::from).flat_map(|key| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        });
        let actions: Vec<_> = each.collect();
        self.command(
            "actions",
            json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] }),
        )
        .await;
    }

    /// Sets the colour scheme that the browser reports as the user's preference, such as `dark`.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        let command = json!({ "cmd": "Emulation.setEmulatedMedia", "params": { "features": features } });
        self.command("goog/cdp/execute", command).await;
    }

    /// Returns a picture of the window as base64 of a PNG.
    pub(crate) async fn screenshot(&self) -> String {
        let path = format!("/session/{}/screenshot", self.session);
        self.send("GET", &path, &json!({})).await.as_str().expect("base64").to_owned()
    }
}

fn request(method: &str, path: &str, body: &Value) -> String {
    let body = body.to_string();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Reads an HTTP response, and returns its body. The header `Content-Length` tells the length of
/// the body, because the driver keeps the connection open.
async fn response(stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while stream.read_line(&mut line).await? > 0 && line != "\r\n" {
        let header = line.to_ascii_lowercase();
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

impl Drop for Browser {
    /// Ends the browser and then its driver, also after a failed test.
    fn drop(&mut self) {
        let request = request("DELETE", &format!("/session/{}", self.session), &json!({}));
        if let Ok(mut stream) = std::net::TcpStream::connect(self.address) {
            // An error means that the driver has ended.
            _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
            _ = stream.write_all(request.as_bytes());
            _ = stream.read(&mut [0; 1]);
        }
        // Sometimes a browser process continues after its session has ended.
        for browser in self.driver.id().into_iter().flat_map(children) {
            _ = std::process::Command::new("kill").args(["-KILL", &browser]).stderr(Stdio::null()).status();
        }
        _ = self.driver.start_kill();
    }
}

/// Returns the ids of the processes that a process has started, on Linux.
fn children(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}
