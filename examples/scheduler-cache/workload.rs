//! What is to be scheduled, and where: nodes that nobody runs, and pods that nothing is started for.

use std::future::ready;
use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use informer_factory::ObjectKey;
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::Request;
use kube::{Api, Client, Resource};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::scheduler::{NAME, POOL};

/// How many requests are under way at a time.
const AT_A_TIME: usize = 16;

/// What is made in the cluster. Cloning gives another handle on the same.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) client: Client,
    /// Where the pods are, and the name of the pool of nodes.
    pub(crate) namespace: String,
}

impl Workload {
    /// Makes what pods need on a real server, where a controller makes it before long.
    pub(crate) async fn ensure_service_account(&self) -> Result<(), kube::Error> {
        let account = json!({ "metadata": { "name": "default" } });
        let answer = self.create(ServiceAccount::url_path(&(), Some(&self.namespace)), account).await;
        match answer {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            answer => answer,
        }
    }

    pub(crate) async fn add_nodes(&self, numbers: Range<usize>) -> Result<(), kube::Error> {
        at_a_time(numbers.map(|n| self.create(Node::url_path(&(), None), self.node(n)))).await
    }

    pub(crate) async fn add_pods(&self, numbers: Range<usize>) -> Result<(), kube::Error> {
        at_a_time(numbers.map(|n| self.create(Pod::url_path(&(), Some(&self.namespace)), pod(n)))).await
    }

    /// Creates an object from its JSON, and does not look at what the server makes of it: there are too many.
    async fn create(&self, path: String, object: Value) -> Result<(), kube::Error> {
        let body = object.to_string().into_bytes();
        let request = Request::new(path).create(&PostParams::default(), body);
        self.client.request::<IgnoredAny>(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
    }

    pub(crate) async fn delete_pods(&self, keys: &[ObjectKey]) -> Result<(), kube::Error> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        at_a_time(keys.iter().map(|key| {
            let (api, name) = (api.clone(), key.name().to_owned());
            async move { api.delete(&name, &DeleteParams::default().grace_period(0)).await.map(drop) }
        }))
        .await
    }

    /// Takes the nodes back, which are in no namespace.
    pub(crate) async fn remove_nodes(&self) -> Result<(), kube::Error> {
        let api = Api::<Node>::all(self.client.clone());
        let of_pool = ListParams::default().labels(&format!("{POOL}={}", self.namespace));
        api.delete_collection(&DeleteParams::default(), &of_pool).await.map(drop)
    }

    fn node(&self, n: usize) -> Value {
        let room = json!({ "cpu": "8", "memory": "16Gi", "pods": "110" });
        json!({
            "metadata": {
                "name": format!("{}-{n}", self.namespace),
                "labels": { POOL: self.namespace },
            },
            // So that the cluster's own scheduler keeps other pods away.
            "spec": { "taints": [{ "key": POOL, "value": self.namespace, "effect": "NoSchedule" }] },
            "status": { "allocatable": room, "capacity": room },
        })
    }
}

fn pod(n: usize) -> Value {
    // 137.5m on average, in several forms.
    let cpu = ["50m", "0.1", "150m", "0.25"][n % 4];
    let memory = ["64Mi", "128Mi", "134217728", "0.25Gi", "100M"][n % 5];
    json!({
        "metadata": { "name": format!("pod-{n}") },
        "spec": {
            "schedulerName": NAME,
            "containers": [{
                "name": "main",
                "image": "nginx",
                "resources": { "requests": { "cpu": cpu, "memory": memory } },
            }],
            "tolerations": [{ "operator": "Exists" }],
            "terminationGracePeriodSeconds": 0,
        },
    })
}

/// Sends requests, up to the first that fails.
async fn at_a_time(
    requests: impl Iterator<Item: Future<Output = Result<(), kube::Error>>>,
) -> Result<(), kube::Error> {
    stream::iter(requests).buffer_unordered(AT_A_TIME).try_for_each(|()| ready(Ok(()))).await
}
