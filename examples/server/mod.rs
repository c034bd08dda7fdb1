//! [`Server`]: the API server of most examples. By default it is simulated in this process. The
//! variable `INFORMER_E2E_KUBECONFIG` selects a real server, as in `cargo xtask e2e`. `Server`
//! never uses the user's default kubeconfig, because these examples create and delete objects.

use std::error::Error;
use std::fmt::Debug;

use informer_testing::Simulator;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// The environment variable with the path of the kubeconfig of a real server.
const KUBECONFIG: &str = "INFORMER_E2E_KUBECONFIG";

/// Returns whether the examples use a real server and not the simulator.
#[allow(dead_code, reason = "only some programs need it")]
pub(crate) fn is_real() -> bool {
    std::env::var_os(KUBECONFIG).is_some()
}

/// An API server, and a namespace that only this program uses.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    simulator: Option<Simulator>,
}

impl Server {
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let (config, simulator) = if let Ok(path) = std::env::var(KUBECONFIG) {
            let kubeconfig = Kubeconfig::read_from(path)?;
            (Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?, None)
        } else {
            let simulator = Simulator::builder().built_in_kinds().start().await?;
            (simulator.kube_config(), Some(simulator))
        };
        let client = informer_factory::connect(config, ConfigExt::rustls_https_connector_with_connector)?;
        let namespace = serde_json::from_value(json!({ "metadata": { "generateName": "example-" } }))?;
        let namespace =
            Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(Self { client, namespace: namespace.name_any(), simulator })
    }

    /// Creates an object in `self.namespace`. `object` is the object or its JSON.
    pub(crate) async fn create<K>(&self, object: impl Serialize) -> Result<K, Box<dyn Error>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let api = Api::<K>::namespaced(self.client.clone(), &self.namespace);
        Ok(api
            .create(&PostParams::default(), &serde_json::from_value(serde_json::to_value(object)?)?)
            .await?)
    }

    /// Deletes the namespace of this program, and stops the simulator if the server is simulated.
    ///
    /// Drop all other clients first: the simulator waits up to two seconds until their connections
    /// are closed.
    pub(crate) async fn shutdown(self) -> Result<(), Box<dyn Error>> {
        let namespaces = Api::<Namespace>::all(self.client);
        namespaces.delete(&self.namespace, &DeleteParams::background()).await?;
        drop(namespaces);
        if let Some(simulator) = self.simulator {
            simulator.shutdown().await;
        }
        Ok(())
    }
}
