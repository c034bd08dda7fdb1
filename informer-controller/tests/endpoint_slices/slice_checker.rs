//! [`SliceChecker`]: compares the slices on the server with slices computed from plain lists.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use informer_factory::{Cached, HandlerRegistration, SharedInformerFactory};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Failure;
use crate::slices::{self, MANAGED_BY, MANAGER};
use crate::views::PodEndpoint;

/// The sorted pods of each service with their addresses. A pod in several slices occurs several
/// times. Services without pods are absent.
pub(crate) type Endpoints = BTreeMap<String, Vec<(String, String)>>;

/// Timeout of each wait; a working program never reaches it.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct SliceChecker {
    client: Client,
    namespace: String,
    /// The number of slices created since the start. Each update or deletion of a slice also wakes the
    /// receiver, although the number stays the same.
    made: watch::Receiver<usize>,
    handler: HandlerRegistration,
    factory: SharedInformerFactory,
}

impl SliceChecker {
    pub(crate) async fn start(client: Client, namespace: &str) -> Result<Self, Failure> {
        let factory = SharedInformerFactory::new(client.clone()).in_namespace(namespace);
        let ours = factory.with_labels(&format!("{MANAGED_BY}={MANAGER}"));
        let (adds, made) = watch::channel(0);
        let (updates, deletes) = (adds.clone(), adds.clone());
        let handler = ours.discovery().v1().endpoint_slices().add_handlers(|handlers| {
            handlers
                .on_add(move |_: &Cached<EndpointSlice>, _| adds.send_modify(|made| *made += 1))
                .on_update(move |_, _| updates.send_modify(|_| {}))
                .on_delete(move |_| deletes.send_modify(|_| {}))
        });
        factory.start();
        factory.wait_for_cache_sync().await?;
        Ok(Self { client, namespace: namespace.to_owned(), made, handler, factory })
    }

    /// Waits until `count` slices have been created.
    pub(crate) async fn made(&mut self, count: usize) -> Result<usize, Failure> {
        Ok(*timeout(TIMEOUT, self.made.wait_for(|made| *made >= count)).await??)
    }

    /// Waits until the endpoints in all slices are as expected, and returns them. Services and pods
    /// must not change during the wait.
    pub(crate) async fn settled(&mut self) -> Result<Endpoints, Failure> {
        let expected = self.expected().await?;
        let settled = async {
            loop {
                self.made.mark_unchanged();
                if self.actual().await? == expected {
                    return Ok::<_, Failure>(());
                }
                self.made.changed().await?;
            }
        };
        if let Ok(settled) = timeout(TIMEOUT, settled).await {
            return settled.map(|()| expected);
        }
        let actual = self.actual().await?;
        let names = expected.keys().chain(actual.keys());
        let differ: BTreeSet<_> = names.filter(|name| expected.get(*name) != actual.get(*name)).collect();
        Err(format!("after {TIMEOUT:?} these services have wrong endpoints: {differ:?}").into())
    }

    pub(crate) async fn end(self) {
        drop(self.handler);
        self.factory.shutdown().await;
    }

    /// Computes the expected endpoints of each service by checking each pod for each service.
    async fn expected(&self) -> Result<Endpoints, Failure> {
        let services = Api::<Service>::namespaced(self.client.clone(), &self.namespace);
        let pods = Api::<PodEndpoint>::namespaced(self.client.clone(), &self.namespace);
        let pods = pods.list(&ListParams::default()).await?.items;
        let mut expected = Endpoints::new();
        for service in services.list(&ListParams::default()).await? {
            let selector = slices::selector(&service);
            for pod in pods.iter().filter(|_| !selector.is_empty()) {
                let is_selected =
                    selector.iter().all(|(label, value)| pod.labels().get(label) == Some(value));
                if let Some(address) = pod.ready_address().filter(|_| is_selected) {
                    let pods = expected.entry(service.name_any()).or_default();
                    pods.push((pod.name_any(), address.to_owned()));
                }
            }
        }
        Ok(in_order(expected))
    }

    async fn actual(&self) -> Result<Endpoints, Failure> {
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), &self.namespace);
        let ours = ListParams::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
        let mut actual = Endpoints::new();
        for slice in api.list(&ours).await? {
            let service = slices::service_key(&slice).ok_or("a slice has no service")?;
            for endpoint in slice.endpoints.into_iter().flatten() {
                let pod = endpoint.target_ref.and_then(|pod| pod.name).unwrap_or_default();
                let address = endpoint.addresses.into_iter().next().unwrap_or_default();
                actual.entry(service.name().to_owned()).or_default().push((pod, address));
            }
        }
        Ok(in_order(actual))
    }
}

fn in_order(mut endpoints: Endpoints) -> Endpoints {
    endpoints.values_mut().for_each(|pods| pods.sort_unstable());
    endpoints
}
