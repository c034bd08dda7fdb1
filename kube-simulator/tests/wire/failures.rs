//! Causes server failures for scenarios. The simulator has methods for these failures. On a real
//! server, changes in etcd, flow control or a signal cause them.

use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use kube::client::Body;
use kube::{Client, Config};
use kube_simulator::{CannedResponse, RequestFilter, ShutdownAnswer};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::answer::Answer;
use crate::connection::Connection;
use crate::custom::{DEFINITIONS, Widgets};
use crate::objects::uid;
use crate::server::{POLL_INTERVAL, Server, config};
use crate::target::Target;

/// The environment variable with the URL of the real server's etcd.
const ETCD: &str = "INFORMER_E2E_ETCD";

/// The simulator's compaction interval. [`Server::compact_for_all`] advances the clock by two
/// intervals. With the default of five minutes, a scenario would exceed its timeout.
pub(crate) const COMPACTION: Duration = Duration::from_secs(30);

/// The response header with the UID of the flow schema.
pub(crate) const FLOW_SCHEMA: &str = "x-kubernetes-pf-flowschema-uid";

/// The path of the flow control API.
const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// Methods that cause failures of the storage.
impl Server {
    /// Compacts etcd at this resource version, as an API server does every few minutes.
    pub(crate) async fn compact(&self, version: u64) {
        if let Some(simulator) = &self.simulator {
            return simulator.compact();
        }
        etcd("compaction", &json!({ "revision": version.to_string(), "physical": true })).await;
    }

    /// Compacts etcd at this resource version and publishes the compaction to all API servers, as
    /// the compacting API server does every few minutes. Each API server checks every 15 seconds.
    pub(crate) async fn compact_for_all(&self, version: u64) {
        if self.simulator.is_some() {
            // A compaction removes only the history before the previous compaction, so two compactions
            // are necessary.
            return tokio::time::advance(COMPACTION * 2).await;
        }
        self.compact(version).await;
        put("compact_rev_key", &version.to_string()).await;
    }

    /// Deletes a corrupt event in the scenario's namespace after `watch` has started.
    pub(crate) async fn delete_unreadable_event<W>(&self, name: &str, watch: impl Future<Output = W>) -> W {
        let key = format!("{}/events/{}/{name}", self.target.prefix(), self.namespace);
        if self.is_real() {
            store_invalid_bytes(&key).await;
        }
        let watch = watch.await;
        match &self.simulator {
            Some(simulator) => {
                let events = simulator.objects("v1", "Event").expect("events are served");
                events.delete_corrupt(&format!("{}/{name}", self.namespace)).expect("the object exists");
            }
            None => {
                let path = format!("{}/{name}", self.core("events"));
                let options = json!({ "ignoreStoreReadErrorWithClusterBreakingPotential": true });
                self.delete_with(&path, &options).await.expect(200);
            }
        }
        watch
    }
}

/// Widgets with a watch cache that is not ready.
pub(crate) struct UnreadyWidgets<'a> {
    server: &'a Server,
    pub(crate) path: String,
    corrupt_key: String,
}

impl<'a> UnreadyWidgets<'a> {
    /// Defines widgets and creates some. On a real server, a corrupt stored object keeps the cache
    /// unready; this object sorts after the widgets in a list.
    pub(crate) async fn with(server: &'a Server, names: &[&str]) -> Self {
        let widgets = Widgets::of(server);
        let (prefix, group) = (server.target.prefix(), &widgets.group);
        let corrupt_key = format!("{prefix}/{group}/widgets/{}/zzz", server.namespace);
        match &server.simulator {
            Some(simulator) => simulator.set_watch_cache_ready(false),
            None => store_invalid_bytes(&corrupt_key).await,
        }
        server.create(DEFINITIONS, &widgets.definition()).await;
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while server.post(&widgets.path(), &widgets.widget(names[0], "red")).await.code != 201 {
            ticks.tick().await;
        }
        for name in &names[1..] {
            widgets.create(name, "red").await;
        }
        Self { server, path: widgets.path(), corrupt_key }
    }

    /// Requests the widgets once, with these parameters.
    pub(crate) async fn get(&self, query: &str) -> Answer {
        self.server.get_once(&format!("{}{query}", self.path)).await
    }

    /// Makes the cache ready, and waits for it.
    pub(crate) async fn become_ready(&self) {
        match &self.server.simulator {
            Some(simulator) => simulator.set_watch_cache_ready(true),
            None => delete(&self.corrupt_key).await,
        }
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while self.get("?resourceVersion=0").await.code != 200 {
            ticks.tick().await;
        }
    }
}

/// Methods that cause failures of requests.
impl Server {
    /// Lists the namespace's secrets as a user whose requests flow control rejects.
    pub(crate) async fn list_until_rejected(&self) -> Answer {
        let unprivileged = self.as_unprivileged_user().await;
        if let Some(simulator) = &self.simulator {
            simulator.fail_next(1, RequestFilter::any(), CannedResponse::too_many_requests(1));
            return unprivileged.get_once(&self.secrets()).await;
        }
        let (levels, schemas) = ("prioritylevelconfigurations", "flowschemas");
        let [rights, level, schema] = self.flow_control_objects();
        self.create(&self.group("rbac.authorization.k8s.io/v1", "rolebindings"), &rights).await;
        self.create(&format!("{FLOW_CONTROL}/{levels}"), &level).await;
        let schema = self.create(&format!("{FLOW_CONTROL}/{schemas}"), &schema).await;
        unprivileged.until(|answer| answer.code == 200 && answer.header(FLOW_SCHEMA) == uid(&schema)).await;
        // These requests occupy all seats, because their bodies are not sent.
        let (mut under_way, mut answer) = (Vec::new(), unprivileged.get_once(&self.secrets()).await);
        while answer.code != 429 {
            let mut connection = Connection::open_as(self, "nobody").await;
            under_way.push(connection.begin_to_post(&self.secrets()).await);
            answer = unprivileged.get_once(&self.secrets()).await;
        }
        for kind in [schemas, levels] {
            self.delete(&format!("{FLOW_CONTROL}/{kind}/{}", self.namespace)).await.expect(200);
        }
        answer
    }

    /// Lists the namespace's secrets until the response matches.
    async fn until(&self, is_wanted: impl Fn(&Answer) -> bool) -> Answer {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let answer = self.get_once(&self.secrets()).await;
            if is_wanted(&answer) {
                return answer;
            }
        }
    }

    /// Returns a binding that grants the user `nobody` all permissions in the scenario's namespace,
    /// a priority level with few seats, and a flow schema for that level.
    fn flow_control_objects(&self) -> [Value; 3] {
        let metadata = json!({ "name": self.namespace });
        let rights = json!({
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody" }],
        });
        let reject = json!({ "type": "Reject" });
        let limited =
            json!({ "nominalConcurrencyShares": 0, "borrowingLimitPercent": 0, "limitResponse": reject });
        let level = json!({ "metadata": metadata, "spec": { "type": "Limited", "limited": limited } });
        let rules = json!([{
            "subjects": [{ "kind": "User", "user": { "name": "nobody" } }],
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": [self.namespace],
            }],
        }]);
        let leads_to = json!({ "name": self.namespace });
        let spec = json!({ "matchingPrecedence": 2, "priorityLevelConfiguration": leads_to, "rules": rules });
        [rights, level, json!({ "metadata": metadata, "spec": spec })]
    }

    /// Starts the shutdown of the server. With a shutdown delay, the server still serves for some
    /// seconds, but is not ready.
    pub(crate) fn begin_shutdown(&self) {
        let answer = match self.target {
            Target::WithoutShutdownDelay => ShutdownAnswer::ServiceUnavailable,
            _ => ShutdownAnswer::Usual,
        };
        match &self.simulator {
            Some(simulator) => simulator.begin_shutdown(answer),
            None => {
                assert!(self.target.can_be_shut_down(), "other scenarios share this server");
                let variable = self.target.process();
                let process = std::env::var(&variable)
                    .unwrap_or_else(|_| panic!("{variable} must be a process ID: run `cargo xtask e2e`"));
                let status = Command::new("kill").arg(&process).status().expect("`kill` runs");
                assert!(status.success());
            }
        }
    }

    /// Waits until a server in shutdown rejects requests. A real server still finishes running
    /// requests for some seconds.
    pub(crate) async fn until_requests_are_rejected(&self) -> Answer {
        if let Some(simulator) = &self.simulator {
            simulator.begin_shutdown(ShutdownAnswer::TooManyRequests);
        }
        self.until(|answer| answer.code != 200).await
    }
}

/// Methods for a server without a shutdown delay.
impl Server {
    /// Waits until the server's port is closed.
    pub(crate) async fn until_port_is_closed(&self) {
        let url = config(self.target, "admin").await.cluster_url;
        let address = url.authority().expect("a host and a port").as_str().to_owned();
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while TcpStream::connect(&address).await.is_ok() {
            ticks.tick().await;
        }
    }

    /// Returns how long the server keeps open watches in a shutdown. This time is the server's
    /// `--request-timeout`: a minute by default, but shorter for the real server of these
    /// scenarios.
    pub(crate) fn last_watches(&self) -> Duration {
        Duration::from_secs(if self.is_real() { 20 } else { 60 })
    }

    /// Advances the simulator's clock. The clock of a real server cannot be changed.
    pub(crate) async fn pass(&self, time: Duration) {
        if !self.is_real() {
            tokio::time::pause();
            tokio::time::advance(time).await;
            tokio::time::resume();
        }
    }
}

/// Replaces an object in etcd by invalid bytes. The server treats these bytes as encrypted data for
/// which it has no key.
async fn store_invalid_bytes(key: &str) {
    put(key, "k8s:enc:nonsense").await;
}

async fn put(key: &str, value: &str) {
    etcd("put", &json!({ "key": encoded(key), "value": encoded(value) })).await;
}

async fn delete(key: &str) {
    etcd("deleterange", &json!({ "key": encoded(key) })).await;
}

fn encoded(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// Calls etcd through its JSON gateway.
async fn etcd(call: &str, body: &Value) {
    let url = std::env::var(ETCD).unwrap_or_else(|_| panic!("{ETCD} must be a URL: run `cargo xtask e2e`"));
    let etcd = Client::try_from(Config::new(url.parse().expect("a URL"))).expect("a client for etcd");
    let request = Request::post(format!("/v3/kv/{call}")).body(Body::from(body.to_string().into_bytes()));
    let answer = Answer::read(etcd.send(request.expect("a request")).await.expect("etcd answers")).await;
    answer.expect(200);
}
