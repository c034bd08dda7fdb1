//! A simulated cluster, a factory with four informers, a controller, and an inspector that shows
//! the informers and the controller.

use std::time::Duration;

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, own_key,
};
use informer_core::{HandlerOptions, HandlerRegistration, Handlers};
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use informer_monitor::Inspector;
use informer_testing::Simulator;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct World {
    pub(crate) simulator: Simulator,
    pub(crate) factory: SharedInformerFactory,
    pub(crate) url: String,
    server: JoinHandle<()>,
    controller: JoinHandle<()>,
    shutdown: CancellationToken,
    _handler: HandlerRegistration,
}

fn pod(name: &str, node: &str, image: &str) -> Value {
    let app = name.split('-').next();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "shop", "name": name, "labels": { "app": app } },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": image }] },
    })
}

fn secret(password: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": { "namespace": "shop", "name": "database" }, "data": { "password": password },
    })
}

fn map(name: &str, colour: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "shop", "name": name }, "data": { "colour": colour },
    })
}

/// Rejects config maps whose colour is `unknown`, so that the informer quarantines one config map.
fn check(map: &mut ConfigMap) -> Result<(), String> {
    let colour = map.data.as_ref().and_then(|data| data.get("colour"));
    if colour.is_some_and(|colour| colour == "unknown") {
        Err("the colour is unknown".to_owned())
    } else {
        Ok(())
    }
}

/// Runs a controller of pods that fails for the pods of some applications.
fn control(pods: &SharedIndexInformer<Pod>, shutdown: &CancellationToken) -> (RunnerMonitor, JoinHandle<()>) {
    let runner = ControllerRunner::new(Workqueue::builder().name("zones").build()).watches(pods, own_key);
    let monitor = runner.monitor();
    let reconcile = |request: ReconcileRequest| {
        let is_unknown = ["web", "ledger"].iter().any(|app| request.key().name().starts_with(app));
        std::future::ready(if is_unknown { Err("no such zone") } else { Ok(Reconciled::Done) })
    };
    let shutdown = shutdown.clone();
    let run = async move { runner.run(reconcile, shutdown).await.expect("the informer syncs") };
    (monitor, tokio::spawn(run))
}

impl World {
    pub(crate) async fn start() -> Self {
        let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
        for (name, node, image) in [
            ("web-0", "node-0", "web:1"),
            ("web-1", "node-1", "web:1"),
            ("web-2", "node-2", "web:2"),
            ("db-0", "node-1", "db:1"),
        ] {
            simulator.create(&pod(name, node, image)).expect("a new object");
        }
        Self::of(simulator).await
    }

    /// Adds a secret and config maps to a cluster, and starts informers and the inspector.
    pub(crate) async fn of(simulator: Simulator) -> Self {
        simulator.create(&secret("aHVudGVyMg==")).expect("a new object");
        for (name, colour) in [("good", "green"), ("bad", "unknown")] {
            simulator.create(&map(name, colour)).expect("a new object");
        }
        let client = simulator.client().expect("a client");
        let factory = SharedInformerFactory::builder(client)
            .configure::<ConfigMap>(|options| options.transform(check))
            .build();
        let pods = factory.core().v1().pods();
        let _nodes = factory.core().v1().nodes();
        let (secrets, maps) = (factory.core().v1().secrets(), factory.core().v1().config_maps());
        pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone()).expect("a new index");
        let options = HandlerOptions::new().name("billing");
        let handler = pods.add_event_handler_with(Handlers::new(), &options);
        let shutdown = CancellationToken::new();
        let (monitor, controller) = control(&pods, &shutdown);
        let inspector =
            Inspector::new(&factory).objects(&pods).objects(&secrets).objects(&maps).controller(monitor);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let server =
            tokio::spawn(async move { inspector.serve(listener).await.expect("a loopback address") });
        factory.start();
        let synced = tokio::time::timeout(Duration::from_secs(60), factory.wait_for_cache_sync());
        synced.await.expect("in a minute").expect("the informers sync");
        Self { simulator, factory, url, server, controller, shutdown, _handler: handler }
    }

    pub(crate) async fn label_pod(&self, name: &str, label: &str, value: &str) {
        let api = Api::<Pod>::namespaced(self.simulator.client().expect("a client"), "shop");
        let patch = Patch::Merge(json!({ "metadata": { "labels": { label: value } } }));
        api.patch(name, &PatchParams::default(), &patch).await.expect("the pod exists");
    }

    pub(crate) fn delete_pod(&self, name: &str) {
        self.simulator.delete::<Pod>(&format!("shop/{name}")).expect("the pod exists");
    }

    pub(crate) fn change_secret(&self, password: &str) {
        self.simulator.update(&secret(password)).expect("the secret exists");
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.controller.await.expect("no panic");
        self.factory.shutdown().await;
        self.server.abort();
        // The result is an error, because the task was aborted.
        _ = self.server.await;
        self.simulator.shutdown().await;
    }
}
