//! Custom resource definitions, each in its own API group.

use serde_json::{Value, json};

use crate::server::{MERGE, POLL_INTERVAL, Server};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Widgets: the custom resource of one scenario, in two versions.
pub(crate) struct Widgets<'a> {
    server: &'a Server,
    pub(crate) group: String,
}

impl<'a> Widgets<'a> {
    pub(crate) fn of(server: &'a Server) -> Self {
        Self { server, group: format!("{}.test", server.namespace) }
    }

    /// Defines widgets and waits until they are served.
    pub(crate) async fn define(server: &'a Server) -> Self {
        let widgets = Self::of(server);
        server.create(DEFINITIONS, &widgets.definition()).await;
        widgets.served().await;
        widgets
    }

    pub(crate) fn name(&self) -> String {
        format!("widgets.{}", self.group)
    }

    pub(crate) fn definition_path(&self) -> String {
        format!("{DEFINITIONS}/{}", self.name())
    }

    /// Returns the path of the widgets in the scenario's namespace, in the stored version.
    pub(crate) fn path(&self) -> String {
        self.path_in("v1")
    }

    pub(crate) fn path_in(&self, version: &str) -> String {
        self.server.group(&format!("{}/{version}", self.group), "widgets")
    }

    pub(crate) fn definition(&self) -> Value {
        let spec = json!({
            "type": "object",
            "required": ["color"],
            "properties": {
                "color": { "type": "string" },
                "replicas": { "type": "integer", "default": 1 },
            },
        });
        let schema = json!({
            "type": "object",
            "properties": {
                "spec": spec,
                "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            },
        });
        let subresources = json!({
            "status": {},
            "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
        });
        let version = |name: &str, storage: bool| {
            json!({
                "name": name,
                "served": true,
                "storage": storage,
                "subresources": subresources,
                "selectableFields": [{ "jsonPath": ".spec.color" }],
                "schema": { "openAPIV3Schema": schema },
            })
        };
        let names = json!({
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wdg"],
        });
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": self.name() },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": names,
                "versions": [version("v1", true), version("v2", false)],
            },
        })
    }

    pub(crate) fn widget(&self, name: &str, color: &str) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group),
            "kind": "Widget",
            "metadata": { "name": name },
            "spec": { "color": color },
        })
    }

    pub(crate) async fn create(&self, name: &str, color: &str) -> Value {
        self.server.create(&self.path(), &self.widget(name, color)).await
    }

    /// Waits until widgets can be created and listed, and returns the list. After a change of the
    /// definition, the server returns various errors for a while, even after a first success.
    pub(crate) async fn served(&self) -> Value {
        let probe = format!("{}?dryRun=All", self.path());
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            let created = self.server.post(&probe, &self.widget("probe", "none")).await;
            let list = self.server.get(&self.path()).await;
            if (created.code, list.code) == (201, 200) {
                return list.expect(200);
            }
            ticks.tick().await;
        }
    }

    /// Clears the watch cache of widgets by a change of their definition.
    pub(crate) async fn forget_history(&self) {
        let names = json!({ "shortNames": ["wdg", "wdgt"] });
        let change = json!({ "spec": { "names": names } });
        self.server.patch(&self.definition_path(), MERGE, &change).await.expect(200);
        let path = format!("/apis/{}/v1", self.group);
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        while !self.server.get(&path).await.text().contains("\"wdgt\"") {
            ticks.tick().await;
        }
        self.served().await;
    }

    /// Waits until widgets are no longer served, and returns the response.
    pub(crate) async fn until_not_served(&self) -> crate::answer::Answer {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let answer = self.server.get(&self.path()).await;
            if answer.code == 404 {
                return answer;
            }
        }
    }
}
