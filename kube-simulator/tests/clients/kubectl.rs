//! Runs `kubectl` against one server, and removes the parts of its output that differ between runs.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use kube_simulator::Simulator;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The environment variable with the path of the real server's kubeconfig.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// Maximum time for one run of `kubectl`. It is long, because a run includes discovery and a watch
/// on a possibly busy server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a simulator that requires existing namespaces, like the real server.
pub(crate) async fn simulator() -> Simulator {
    let builder = Simulator::builder().built_in_kinds().require_namespaces();
    // With TLS, `kubectl` uses HTTP/2.
    builder.tls().goaway_chance(0.02).start().await.expect("a loopback port")
}

/// `kubectl` with the configuration of one server and one namespace.
#[derive(Debug)]
pub(crate) struct Kubectl {
    pub(crate) namespace: String,
    /// The folder of the kubeconfig and of the discovery cache.
    folder: TempDir,
}

/// The result of one run of `kubectl`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) success: bool,
    /// The normalized output: one space between words, and no times.
    pub(crate) text: String,
}

impl Kubectl {
    /// Creates a `kubectl` for a simulator.
    pub(crate) async fn of(simulator: &Simulator, namespace: &str) -> Self {
        Self::new(&simulator.kubeconfig(), namespace).await
    }

    /// Creates a `kubectl` for the real server.
    pub(crate) async fn real(namespace: &str) -> Self {
        let path = std::env::var(KUBECONFIG)
            .unwrap_or_else(|_| panic!("{KUBECONFIG} must name a kubeconfig: run `cargo xtask e2e`"));
        Self::new(&std::fs::read_to_string(path).expect("a kubeconfig"), namespace).await
    }

    async fn new(kubeconfig: &str, namespace: &str) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).expect("a file");
        let kubectl = Self { namespace: namespace.to_owned(), folder };
        // This manifest creates the same namespace as `kubectl create namespace`.
        let manifest = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": namespace },
        });
        let path = kubectl.folder.path().join("namespace.json");
        std::fs::write(&path, manifest.to_string()).expect("a file");
        kubectl.run(&["create", "-f", &path.to_string_lossy()]).await.expect_success();
        kubectl
    }

    /// Runs `kubectl` with these arguments, and waits for its end.
    pub(crate) async fn run(&self, args: &[&str]) -> Answer {
        let running = self.command(args).output();
        let output = tokio::time::timeout(TIMEOUT, running).await.expect("kubectl ends in time");
        let output = output.expect("kubectl is on the PATH: run `cargo xtask e2e`");
        let text = [output.stdout, output.stderr].concat();
        Answer { success: output.status.success(), text: normalize(&String::from_utf8_lossy(&text)) }
    }

    /// Runs `kubectl` with arguments that are given as one line of words.
    pub(crate) async fn line(&self, line: &str) -> Answer {
        self.run(&line.split_whitespace().collect::<Vec<_>>()).await
    }

    /// Starts `kubectl` with these arguments. The caller reads its output.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("kubectl is on the PATH")
    }

    fn command(&self, args: &[&str]) -> Command {
        let manifests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/manifests");
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .args(["--namespace", &self.namespace])
            .arg("--cache-dir")
            .arg(self.folder.path())
            .args(args)
            .current_dir(manifests)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

impl Answer {
    /// Returns the output. Panics if the command has failed.
    #[track_caller]
    pub(crate) fn expect_success(self) -> String {
        assert!(self.success, "{}", self.text);
        self.text
    }
}

/// Returns whether a word is a short time span such as `5s` or `3m20s`.
fn is_age(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let units = word.bytes().filter(|byte| b"smhd".contains(byte)).count();
    word.len() <= 6
        && digits > 0
        && units > 0
        && digits + units == word.len()
        && word.as_bytes()[0].is_ascii_digit()
}

/// Replaces ages and times, collapses spaces, and sorts the causes of an error, which the server
/// reports in random order.
pub(crate) fn normalize(text: &str) -> String {
    let word = |word: &str| {
        if is_age(word) {
            "AGE".to_owned()
        } else if word.len() == 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T' {
            "TIME".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    let mut lines: Vec<_> = text.lines().map(line).collect();
    let is_cause = |line: &String| line.starts_with("* ");
    let causes = lines.iter().position(is_cause).unwrap_or(lines.len());
    let count = lines[causes..].iter().take_while(|line| is_cause(line)).count();
    lines[causes..causes + count].sort_unstable();
    lines.join("\n")
}
