//! Tests of the program with a real inspector: output, tokens, Unix sockets, and errors at the start.

use std::ffi::OsStr;
use std::process::Output;
use std::time::Duration;

use informer_controller::{ControllerRunner, Workqueue, own_key};
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use informer_monitor::Inspector;
use informer_testing::Simulator;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::process::Command;

const TOKEN: &str = "0123456789abcdef";

/// A simulated cluster and an informer of its config maps.
struct World {
    simulator: Simulator,
    factory: SharedInformerFactory,
    maps: SharedIndexInformer<ConfigMap>,
}

impl World {
    async fn start() -> Self {
        let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
        let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
        let maps = factory.core().v1().config_maps();
        let world = Self { simulator, factory, maps };
        world.create("first");
        world.factory.start();
        soon(world.factory.wait_for_cache_sync()).await.expect("the informer syncs");
        world
    }

    fn create(&self, name: &str) {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "shop", "name": name } });
        self.simulator.create(&map).expect("a new object");
    }

    fn inspector(&self) -> Inspector {
        let queue = Workqueue::builder().name("maps").build();
        let runner = ControllerRunner::new(queue).watches(&self.maps, own_key);
        Inspector::new(&self.factory).objects(&self.maps).controller(runner.monitor())
    }

    /// Serves the inspector with a token, and returns its address.
    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(self.inspector().token(TOKEN).serve(listener));
        format!("http://{address}")
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes less than a minute")
}

/// Runs the program. Its output is not a terminal, so the program prints the table once and ends.
async fn run(address: &str, args: &[&OsStr], token: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer-top"));
    command.arg(address).args(args).args(["--interval", "0.1"]).env_remove("INFORMER_TOP_TOKEN");
    command.envs(token.map(|token| ("INFORMER_TOP_TOKEN", token))).kill_on_drop(true);
    soon(command.output()).await.expect("the program starts")
}

#[track_caller]
fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that the program failed and printed no table, and returns its error message.
#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the cells of the row of an informer or controller.
#[track_caller]
fn row<'a>(output: &'a str, name: &str) -> Vec<&'a str> {
    let row = output.lines().find(|line| line.starts_with(&format!("{name} ")));
    row.unwrap_or_else(|| panic!("no {name} in\n{output}")).split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_shows_the_state_and_later_changes() {
    let world = World::start().await;
    let address = world.serve().await;
    let output = printed(&run(&address, &[OsStr::new("--once")], Some(TOKEN)).await);
    assert!(
        output.starts_with(&format!("informer-top {address} · connected\nthe informer is live · all synced"))
    );
    let cells = row(&output, "configmaps");
    assert_eq!((cells[1], cells.last()), ("1", Some(&"live")), "{output}");
    assert_eq!(row(&output, "maps")[..2], ["maps", "0"], "{output}");

    world.create("second");
    let arrival = async {
        while world.maps.indexer().len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    soon(arrival).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("a file");
    // The file takes precedence over the variable.
    let args = [OsStr::new("--token-file"), file.as_os_str()];
    let output = printed(&run(&address, &args, Some("of-another-program")).await);
    assert_eq!(row(&output, "configmaps")[1], "2", "{output}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn inspector_on_a_unix_socket_is_read() {
    let world = World::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("inspector.sock");
    let address = format!("unix:{}", path.display());
    let error = refused(&run(&address, &[], None).await);
    assert!(
        error.contains(&format!("no inspector at {address}: No such file or directory; serve one")),
        "{error}"
    );

    tokio::spawn(world.inspector().serve_unix(path.clone()));
    let listens = async {
        while tokio::net::UnixStream::connect(&path).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon(listens).await;
    let output = printed(&run(&address, &[], None).await);
    assert_eq!(row(&output, "configmaps")[1], "1", "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_token_is_an_error_with_the_remedy() {
    let world = World::start().await;
    let address = world.serve().await;
    for token in [None, Some(""), Some("fedcba9876543210")] {
        let error = refused(&run(&address, &[], token).await);
        let expected = format!("error: no access to the inspector at {address}: 401 Unauthorized: ");
        assert!(error.starts_with(&expected), "{error}");
        assert!(error.contains("set INFORMER_TOP_TOKEN, or pass --token-file FILE"), "{error}");
    }
    let missing = [OsStr::new("--token-file"), OsStr::new("no-such-file")];
    let error = refused(&run(&address, &missing, None).await);
    assert!(error.contains("cannot read the token file no-such-file"), "{error}");
    let error = refused(&run(&address, &[], Some("line\nbreak")).await);
    assert!(error.contains("the token has characters that no header can have"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn token_that_is_not_utf8_is_not_printed() {
    use std::os::unix::ffi::OsStrExt;

    let mut command = Command::new(env!("CARGO_BIN_EXE_informer-top"));
    command.env("INFORMER_TOP_TOKEN", OsStr::from_bytes(b"secret\xff")).kill_on_drop(true);
    let error = refused(&soon(command.output()).await.expect("the program starts"));
    assert!(error.contains("INFORMER_TOP_TOKEN is not valid UTF-8; check its source"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn address_without_an_inspector_is_an_error() {
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let unused = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let json = answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true).await;
    let greeting = answering("220 mail server ready\r\n", false).await;
    let other = answering("220 mail server ready\r\n", true).await;
    let api_server = simulator.url().trim_end_matches('/').to_owned();
    for (address, reason) in [
        (unused, "Connection refused"),
        (api_server, "404 Not Found"),
        (json, "the response is not an inspector's overview: missing field"),
        (greeting, "no HTTP response: "),
        (other, "no HTTP response: "),
    ] {
        let error = refused(&run(&address, &[], None).await);
        assert!(error.starts_with(&format!("error: no inspector at {address}: {reason}")), "{error}");
        assert!(error.contains("; serve one with informer_monitor::Inspector"), "{error}");
    }
}

/// Starts a server that gives each connection the same response, before or after the request, and returns its
/// address.
async fn answering(response: &'static str, is_after_request: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The program can close the connection at any time.
            if is_after_request {
                _ = stream.read(&mut [0; 4096]).await;
            }
            _ = stream.write_all(response.as_bytes()).await;
            // The client closes the connection, because closing it here first can discard the response.
            _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    address
}
