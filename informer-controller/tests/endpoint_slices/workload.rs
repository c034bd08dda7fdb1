//! Services, pods, and changes to them. The pods do not run: this module writes their addresses and
//! conditions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::Failure;

const MAX_CONCURRENT_REQUESTS: usize = 8;

#[derive(Clone)]
pub(crate) struct Workload {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) pods: usize,
    pub(crate) services: usize,
    /// Counts addresses, so that no address is used twice.
    pub(crate) addresses: Arc<AtomicU32>,
}

impl Workload {
    pub(crate) async fn create(&self) -> Result<(), Failure> {
        self.ensure_service_account().await?;
        for n in 0..self.services {
            self.create_service(n).await?;
        }
        let pods = (0..self.pods).map(|n| self.create_pod(n));
        stream::iter(pods).buffer_unordered(MAX_CONCURRENT_REQUESTS).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Applies change number `step`. Equal numbers cause equal changes.
    pub(crate) async fn change(&self, step: usize) -> Result<(), Failure> {
        let (pod, service) = (step * 7919 % self.pods, step * 31 % self.services);
        let (pod_name, service_name) = (format!("pod-{pod}"), format!("service-{service}"));
        let (pods, services) = (self.api::<Pod>(), self.api::<Service>());
        let (params, now) = (PatchParams::default(), DeleteParams::default().grace_period(0));
        match step % 8 {
            0 | 1 => self.set_ready(pod, false).await?,
            2 | 3 => self.set_ready(pod, true).await?,
            4 => {
                let labels = json!({ "app": app(step), "tier": tier(step / 8) });
                let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
                pods.patch(&pod_name, &params, &patch).await?;
            }
            5 => {
                pods.delete(&pod_name, &now).await?;
                self.create_pod(pod).await?;
            }
            6 => {
                let tier = (step % 16 < 8).then(|| tier(step / 16));
                let patch = json!({ "spec": { "selector": { "app": app(step / 8), "tier": tier } } });
                services.patch(&service_name, &params, &Patch::Merge(patch)).await?;
            }
            _ => {
                services.delete(&service_name, &DeleteParams::default()).await?;
                self.create_service(service).await?;
            }
        }
        Ok(())
    }

    async fn create_service(&self, n: usize) -> Result<(), Failure> {
        // Half of the services select only one tier, so that a pod belongs to several services.
        let selector = if n.is_multiple_of(2) {
            json!({ "app": app(n / 2) })
        } else {
            json!({ "app": app(n / 2), "tier": tier(n / 4) })
        };
        let ports = json!([{ "name": "http", "port": 80, "targetPort": 8080 }]);
        let spec = json!({ "clusterIP": "None", "selector": selector, "ports": ports });
        let service = json!({ "metadata": { "name": format!("service-{n}") }, "spec": spec });
        self.api::<Service>().create(&PostParams::default(), &serde_json::from_value(service)?).await?;
        Ok(())
    }

    async fn create_pod(&self, n: usize) -> Result<(), Failure> {
        let pod = json!({
            "metadata": { "name": format!("pod-{n}"), "labels": { "app": app(n), "tier": tier(n / 2) } },
            "spec": {
                "schedulerName": "nobody",
                "containers": [{ "name": "main", "image": "nginx" }],
                "terminationGracePeriodSeconds": 0,
            },
        });
        self.api::<Pod>().create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
        let [_, a, b, c] = self.addresses.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let address = format!("10.{a}.{b}.{c}");
        let status = json!({ "podIP": address, "podIPs": [{ "ip": address }], "conditions": ready(!n.is_multiple_of(5)) });
        self.patch_status(n, status).await
    }

    async fn set_ready(&self, n: usize, is_ready: bool) -> Result<(), Failure> {
        self.patch_status(n, json!({ "conditions": ready(is_ready) })).await
    }

    async fn patch_status(&self, n: usize, status: Value) -> Result<(), Failure> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api::<Pod>().patch_status(&format!("pod-{n}"), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Creates the service account that pods need. On a real server a controller creates it, with a
    /// delay.
    async fn ensure_service_account(&self) -> Result<(), Failure> {
        let account = serde_json::from_value(json!({ "metadata": { "name": "default" } }))?;
        match self.api::<ServiceAccount>().create(&PostParams::default(), &account).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            answer => drop(answer?),
        }
        Ok(())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn app(n: usize) -> String {
    format!("app-{}", n % 10)
}

fn tier(n: usize) -> &'static str {
    ["front", "back"][n % 2]
}

fn ready(is_ready: bool) -> Value {
    json!([{ "type": "Ready", "status": if is_ready { "True" } else { "False" } }])
}
