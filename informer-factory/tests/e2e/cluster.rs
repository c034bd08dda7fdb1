//! [`Cluster`]: the connection to the server, and requests that several tests send.

use std::collections::BTreeMap;
use std::fmt::Debug;

use informer_factory::status::Health;
use informer_factory::{InformerOptions, ResourceVersion, SharedIndexInformer, SharedInformerFactory};
use informer_reflector::KubeListWatch;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, VersionMatch};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::objects::{node, object};
use crate::{eventually, within};

/// The environment variable with the path of the kubeconfig. These tests ignore KUBECONFIG, because
/// they create and delete objects and must not change a cluster by accident.
pub(crate) const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// The trait bounds of every object type in these tests.
pub(crate) trait Object:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// The resource version of each object, by key. Tests compare these maps.
pub(crate) type Versions = BTreeMap<String, String>;

/// Returns the client configuration of a user of the kubeconfig: `admin`, or `nobody`, which has no
/// permissions until a test grants them.
pub(crate) async fn config(user: &str) -> Config {
    let path = std::env::var(KUBECONFIG)
        .unwrap_or_else(|_| panic!("{KUBECONFIG} must name a kubeconfig: run `cargo xtask e2e`"));
    let kubeconfig = Kubeconfig::read_from(path).expect("the kubeconfig is readable");
    let options = KubeConfigOptions { context: Some(user.to_owned()), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("the kubeconfig is valid")
}

pub(crate) fn client(config: Config) -> Client {
    informer_factory::connect(config, ConfigExt::rustls_https_connector_with_connector)
        .expect("the configuration is valid")
}

/// Returns a client with all permissions.
pub(crate) async fn admin() -> Client {
    client(config("admin").await)
}

/// A namespace that no other test uses, and a client with all permissions.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Cluster {
    /// Connects, and creates a namespace whose name begins with `purpose`.
    pub(crate) async fn connect(purpose: &str) -> Self {
        let client = admin().await;
        let namespace = json!({ "metadata": { "generateName": format!("e2e-{purpose}-") } });
        let namespaces = Api::<Namespace>::all(client.clone());
        let created =
            namespaces.create(&PostParams::default(), &object(namespace)).await.expect("a new namespace");
        Self { client, namespace: created.name_unchecked() }
    }

    pub(crate) fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn factory(&self) -> SharedInformerFactory {
        SharedInformerFactory::new(self.client.clone()).in_namespace(&self.namespace)
    }

    /// Creates nodes that no other test uses. Pods need an existing node: the garbage collector
    /// deletes the pods of a missing node, and does so at once if the node has been missing for
    /// long.
    pub(crate) async fn nodes<const COUNT: usize>(&self) -> [String; COUNT] {
        let names: [_; COUNT] = std::array::from_fn(|number| format!("{}-{number}", self.namespace));
        for name in &names {
            create(&Api::all(self.client.clone()), &node(name, &self.namespace)).await;
        }
        names
    }

    /// Waits until pods can be created in the namespace. They need a service account, which a
    /// controller creates.
    pub(crate) async fn wait_for_pods_to_be_allowed(&self) {
        let (pods, accounts) = (self.api(), self.api::<ServiceAccount>());
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let probe = crate::objects::pod("probe", "nowhere");
        eventually(async || {
            let refusal = match pods.create(&dry_run, &probe).await {
                Ok(_) => return Some(()),
                Err(kube::Error::Api(status)) if status.code == 403 => status.message,
                Err(error) => panic!("failed to create a pod: {error}"),
            };
            assert!(refusal.contains("serviceaccount"), "{refusal}");
            // The server reads service accounts from a cache that can lag, so the next attempt may
            // also be too early.
            _ = accounts.get_opt("default").await;
            None
        })
        .await;
    }
}

/// Runs a new informer until the guard is dropped.
pub(crate) fn run<K: Object>(
    list_watch: KubeListWatch<K>,
    options: InformerOptions<K>,
) -> (SharedIndexInformer<K>, DropGuard) {
    let (informer, task) = SharedIndexInformer::new(std::sync::Arc::new(list_watch), options);
    let shutdown = CancellationToken::new();
    tokio::spawn(task.run(shutdown.clone()));
    (informer, shutdown.drop_guard())
}

/// Waits until the informer's health satisfies the predicate, and returns that health.
pub(crate) async fn health_that<K: Object>(
    informer: &SharedIndexInformer<K>,
    is_it: impl Fn(&Health) -> bool,
) -> Health {
    let mut status = informer.status().clone();
    let mut health = status.health();
    within(async {
        while !is_it(&health) {
            health = status.health_changed().await.expect("the informer runs");
        }
        health
    })
    .await
}

/// Lists the server's objects, and returns their keys and resource versions.
pub(crate) async fn versions<K: Object>(server: &Api<K>, params: &ListParams) -> Versions {
    let list = server.list(params).await.expect("the server returns a list");
    let version = |object: K| {
        let version = object.resource_version()?;
        let name = object.name_unchecked();
        let key = object.namespace().map_or(name.clone(), |namespace| format!("{namespace}/{name}"));
        Some((key, version))
    };
    list.items.into_iter().filter_map(version).collect()
}

pub(crate) async fn create<K: Object>(server: &Api<K>, object: &K) -> K {
    server.create(&PostParams::default(), object).await.expect("a new object")
}

/// Sets a label by an update of the whole object. Retries after conflicts with other writers.
pub(crate) async fn relabel<K: Object>(server: &Api<K>, name: &str, label: &str, value: &str) -> K {
    eventually(async || {
        let mut object = server.get(name).await.expect("the object exists");
        object.labels_mut().insert(label.to_owned(), value.to_owned());
        match server.replace(name, &PostParams::default(), &object).await {
            Ok(updated) => Some(updated),
            Err(kube::Error::Api(status)) if status.code == 409 => None,
            Err(error) => panic!("failed to update {name}: {error}"),
        }
    })
    .await
}

pub(crate) async fn patch<K: Object>(server: &Api<K>, name: &str, patch: Value) -> K {
    server.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.expect("the object exists")
}

/// Deletes an object without a grace period. With a grace period, a pod on a node without a
/// kubelet would stay, because only the kubelet reports the pod's end.
pub(crate) async fn delete<K: Object>(server: &Api<K>, name: &str) {
    server.delete(name, &DeleteParams::default().grace_period(0)).await.expect("the object exists");
}

/// Waits until the server's watch cache has reached `version`.
pub(crate) async fn caught_up<K: Object>(server: &Api<K>, version: &ResourceVersion) {
    let params = ListParams::default().at(&version.to_string()).matching(VersionMatch::NotOlderThan);
    eventually(async || match server.list(&params).await {
        Ok(_) => Some(()),
        // The watch cache is initializing, or the server's wait for the version timed out.
        Err(kube::Error::Api(status)) if matches!(status.code, 429 | 504) => None,
        Err(error) => panic!("failed to list the objects: {error}"),
    })
    .await;
}
