//! [`Server`]: the server of a scenario, with the scenario's namespace.

use std::time::Duration;

use http::{Method, Request, StatusCode};
use kube::Client;
use kube::client::Body;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_simulator::Simulator;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::failures::COMPACTION;
use crate::objects::{name, secret};
use crate::target::Target;
use crate::watch::Watch;

/// The polling interval for states that no event reports.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The prefix of each scenario's namespace.
const PREFIX: &str = "wire-";

/// The media types of patches.
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const JSON: &str = "application/json";

/// Media types of responses.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub(crate) const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// The parameters of a streaming list.
pub(crate) const STREAMING: [(&str, &str); 3] = [
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
];

/// The API server of a scenario, and a namespace that only this scenario uses.
pub(crate) struct Server {
    client: Client,
    pub(crate) namespace: String,
    pub(crate) simulator: Option<Simulator>,
    pub(crate) target: Target,
}

impl Server {
    /// Starts a simulator for this scenario only, in process or over its socket. Unlike a default
    /// simulator, this simulator is as strict as a real server.
    pub(crate) async fn simulator(target: Target, over_a_socket: bool) -> Self {
        let builder = Simulator::builder().built_in_kinds().require_namespaces().graceful_pod_deletion();
        let builder = builder.goaway_chance(0.02).compress_streaming_lists().compaction_interval(COMPACTION);
        let builder = target.simulated(builder.close_slow_watches_in_time());
        let simulator = builder.start().await.expect("a loopback port");
        let client = match over_a_socket {
            true => simulator.client().expect("a client"),
            false => Client::new(simulator.service(), "default"),
        };
        Self::in_a_namespace(client, Some(simulator), target).await
    }

    /// Connects to the kube-apiserver that `cargo xtask e2e` has started for this target.
    pub(crate) async fn real(target: Target) -> Self {
        Self::in_a_namespace(client_of(config(target, "admin").await), None, target).await
    }

    /// Returns the same server for a user without permissions. In the simulator, all users have all
    /// permissions.
    pub(crate) async fn as_unprivileged_user(&self) -> Self {
        let client = match self.is_real() {
            false => self.client.clone(),
            true => client_of(config(self.target, "nobody").await),
        };
        self.with_client(client, self.target)
    }

    /// Returns another server on the same storage, which keeps running when this server shuts down.
    pub(crate) async fn another(&self) -> Self {
        let client = match &self.simulator {
            Some(simulator) => simulator.lagging_replica().client(),
            None => client_of(config(Target::Usual, "admin").await),
        };
        self.with_client(client, Target::Usual)
    }

    fn with_client(&self, client: Client, target: Target) -> Self {
        Self { client, namespace: self.namespace.clone(), simulator: None, target }
    }

    async fn in_a_namespace(client: Client, simulator: Option<Simulator>, target: Target) -> Self {
        let mut server = Self { client, namespace: String::new(), simulator, target };
        server.namespace = server.new_namespace().await;
        server
    }

    pub(crate) async fn new_namespace(&self) -> String {
        let body = json!({ "metadata": { "generateName": PREFIX } });
        name(&self.post("/api/v1/namespaces", &body).await.expect(201)).to_owned()
    }

    /// Returns the name of a missing node on which no other scenario has pods. Controllers delete
    /// the pods of a node that has been missing for some time.
    pub(crate) fn no_such_node(&self) -> String {
        format!("{}-no-such-node", self.namespace)
    }

    pub(crate) fn is_real(&self) -> bool {
        self.simulator.is_none()
    }
}

/// Methods that return paths.
impl Server {
    /// Returns the path of a core resource in the scenario's namespace.
    pub(crate) fn core(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// Returns the path of a resource of a group version, such as `apps/v1`, in the scenario's
    /// namespace.
    pub(crate) fn group(&self, group_version: &str, plural: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{plural}", self.namespace)
    }

    pub(crate) fn secrets(&self) -> String {
        self.core("secrets")
    }

    pub(crate) fn secret_path(&self, name: &str) -> String {
        format!("{}/{name}", self.secrets())
    }
}

impl Server {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, &[], "").await
    }

    /// Lists secrets with these parameters.
    pub(crate) async fn list(&self, parameters: &[(&str, &str)]) -> Answer {
        self.get(&with_query(&self.secrets(), parameters)).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.call(Method::GET, path, &[("accept", accept)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        if path == self.core("pods") {
            self.allow_pods().await;
        }
        self.call(Method::POST, path, &[("content-type", JSON)], &body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call(Method::PUT, path, &[("content-type", JSON)], &body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, kind: &str, patch: &Value) -> Answer {
        self.call(Method::PATCH, path, &[("content-type", kind)], &patch.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.call(Method::DELETE, path, &[("content-type", JSON)], &options.to_string()).await
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        Answer::read(self.send(method, path, headers, body.as_ref()).await).await
    }

    /// Opens a watch of secrets with these parameters.
    pub(crate) async fn watch(&self, parameters: &[(&str, &str)]) -> Watch {
        self.watch_path(&self.secrets(), parameters).await
    }

    /// Opens a watch of the collection at this path, with these query parameters.
    pub(crate) async fn watch_path(&self, path: &str, parameters: &[(&str, &str)]) -> Watch {
        let parameters = [&[("watch", "true")], parameters].concat();
        Watch::new(self.send(Method::GET, &with_query(path, &parameters), &[], &[]).await)
    }

    pub(crate) async fn watch_as(&self, path: &str, accept: &str, parameters: &[(&str, &str)]) -> Watch {
        let parameters = [&[("watch", "true")], parameters].concat();
        Watch::new(self.send(Method::GET, &with_query(path, &parameters), &[("accept", accept)], &[]).await)
    }

    /// Runs `attempt`, which waits for the last bookmark of a watch, and returns its result. The
    /// attempt opens a watch and creates an object with the given name that the watch does not
    /// select. It returns `None` if the watch ends without a bookmark that follows this creation.
    ///
    /// A real server gets three attempts. The bookmark is due two seconds before the end, but a
    /// server checks for due bookmarks only every 1 to 1.25 seconds, and sends a bookmark only if
    /// its version is new for the watch. On a busy machine, the check may run before the new object
    /// arrives, or too shortly before the end.
    pub(crate) async fn bookmarked<T>(&self, attempt: impl AsyncFn(String) -> Option<T>) -> T {
        let attempts = if self.is_real() { 3 } else { 1 };
        for number in 1..=attempts {
            if let Some(result) = attempt(format!("unseen-{number}")).await {
                return result;
            }
        }
        panic!("no bookmark before the end of {attempts} watches");
    }

    /// Sends a request once, without a retry.
    pub(crate) async fn get_once(&self, path: &str) -> Answer {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        Answer::read(self.client.send(request).await.expect("the server answers")).await
    }

    /// Sends a request, and retries while the resource's watch cache is not ready, as after each
    /// change of a definition.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> http::Response<Body> {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let mut request = Request::builder().method(method.clone()).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(Body::from(body.to_vec())).expect("a request");
            let response = self.client.send(request).await.expect("the server answers");
            // For evictions, this code means that a disruption budget forbids the eviction.
            if response.status() != StatusCode::TOO_MANY_REQUESTS || path.ends_with("/eviction") {
                return response;
            }
        }
    }

    /// Creates the service account that pods need, unless a controller has already created it.
    async fn allow_pods(&self) {
        let account = json!({ "metadata": { "name": "default" } }).to_string();
        let path = self.core("serviceaccounts");
        let answer = self.call(Method::POST, &path, &[("content-type", JSON)], &account).await;
        assert!(matches!(answer.code, 201 | 409), "{}", answer.text());
    }
}

/// Methods that create and label the initial objects of a scenario.
impl Server {
    /// Creates an object, and returns it as stored.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        self.post(path, object).await.expect(201)
    }

    /// Creates secrets with these names, and returns the last one.
    pub(crate) async fn create_secrets(&self, names: &[&str]) -> Value {
        let mut last = Value::Null;
        for name in names {
            last = self.create(&self.secrets(), &secret(name)).await;
        }
        last
    }

    /// Sets a label of a secret, and returns the secret.
    pub(crate) async fn label(&self, secret: &str, label: &str, value: &str) -> Value {
        let patch = json!({ "metadata": { "labels": { label: value } } });
        self.patch(&self.secret_path(secret), MERGE, &patch).await.expect(200)
    }
}

/// Reads the configuration of a context (such as `admin`) from the kubeconfig of a real server.
pub(crate) async fn config(target: Target, context: &str) -> Config {
    let variable = target.kubeconfig();
    let path = std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} must name a kubeconfig: run `cargo xtask e2e`"));
    let kubeconfig = Kubeconfig::read_from(path).expect("a readable kubeconfig");
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a usable kubeconfig")
}

fn client_of(mut config: Config) -> Client {
    // Retries would hide errors from scenarios.
    config.default_retry = false;
    Client::try_from(config).expect("a well-formed configuration")
}

/// Appends query parameters to a path, in their encoded form.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(parameters);
    format!("{path}?{}", query.finish())
}
