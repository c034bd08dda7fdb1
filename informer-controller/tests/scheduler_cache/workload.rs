//! The pods and nodes of the scenario. No kubelet runs on the nodes, and no container starts.

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

const MAX_CONCURRENT_REQUESTS: usize = 16;

/// Creates and deletes objects in the cluster. Clones share their state.
#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) client: Client,
    /// The namespace of the pods, and the name of the pool of nodes.
    pub(crate) namespace: String,
}

impl Workload {
    /// Creates the service account that pods need. On a real server a controller creates it, with a
    /// delay.
    pub(crate) async fn ensure_service_account(&self) -> Result<(), kube::Error> {
        let account = json!({ "metadata": { "name": "default" } });
        let answer = self.create(ServiceAccount::url_path(&(), Some(&self.namespace)), account).await;
        match answer {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            answer => answer,
        }
    }

    pub(crate) async fn add_nodes(&self, numbers: Range<usize>) -> Result<(), kube::Error> {
        send_all(numbers.map(|n| self.create(Node::url_path(&(), None), self.node(n)))).await
    }

    pub(crate) async fn add_pods(&self, numbers: Range<usize>) -> Result<(), kube::Error> {
        send_all(numbers.map(|n| self.create(Pod::url_path(&(), Some(&self.namespace)), pod(n)))).await
    }

    /// Creates an object from its JSON. The response is not decoded, because decoding takes
    /// time if there are many objects.
    async fn create(&self, path: String, object: Value) -> Result<(), kube::Error> {
        let body = object.to_string().into_bytes();
        let request = Request::new(path).create(&PostParams::default(), body);
        self.client.request::<IgnoredAny>(request.map_err(kube::Error::BuildRequest)?).await.map(drop)
    }

    pub(crate) async fn delete_pods(&self, keys: &[ObjectKey]) -> Result<(), kube::Error> {
        let api = Api::<Pod>::namespaced(self.client.clone(), &self.namespace);
        send_all(keys.iter().map(|key| {
            let (api, name) = (api.clone(), key.name().to_owned());
            async move { api.delete(&name, &DeleteParams::default().grace_period(0)).await.map(drop) }
        }))
        .await
    }

    /// Deletes the nodes of the pool. They are cluster-scoped, so deleting the namespace does not
    /// delete them.
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
            // The taint keeps pods of the cluster's own scheduler away.
            "spec": { "taints": [{ "key": POOL, "value": self.namespace, "effect": "NoSchedule" }] },
            "status": { "allocatable": room, "capacity": room },
        })
    }
}

fn pod(n: usize) -> Value {
    // CPU requests in several notations, 137.5m on average.
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

/// Sends several requests at a time, and stops at the first failure.
async fn send_all(
    requests: impl Iterator<Item: Future<Output = Result<(), kube::Error>>>,
) -> Result<(), kube::Error> {
    stream::iter(requests).buffer_unordered(MAX_CONCURRENT_REQUESTS).try_for_each(|()| ready(Ok(()))).await
}
