//! [`Controller`]: keeps the endpoint slices of each service up to date.
//!
//! A change of a pod must reconcile the services that select the pod. To avoid checking every
//! service, services are indexed by one label of their selectors, and a pod looks up its own
//! labels. The result can contain services that do not select the pod; their reconcile calls change
//! nothing.

use std::sync::Arc;

use informer_controller::{
    ControllerRunner, ReconcileRequest, Reconciled, RunnerMonitor, Workqueue, keys_in_index, own_key,
};
use informer_factory::{Cached, Index, ObjectKey, SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::Selector;
use kube::{Api, Client};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::slices::{self, MANAGED_BY, MANAGER};
use crate::views::{PodEndpoint, PodEndpointInformers};

/// A namespace, and a label with its value.
type Label = (String, String, String);

/// A running controller with its own client and caches. Dropping it is like killing its process.
pub(crate) struct Controller {
    pub(crate) monitor: RunnerMonitor,
    running: JoinSet<Result<(), Failure>>,
    shutdown: CancellationToken,
    factory: SharedInformerFactory,
}

/// The shared state of reconcile calls.
struct Shared {
    client: Client,
    services: SharedIndexInformer<Service>,
    pods: SharedIndexInformer<PodEndpoint>,
    slices: SharedIndexInformer<EndpointSlice>,
    slices_of: Index<EndpointSlice, ObjectKey>,
}

impl Controller {
    pub(crate) fn start(client: Client, namespace: &str) -> Result<Self, Failure> {
        let factory = SharedInformerFactory::new(client.clone()).in_namespace(namespace);
        let services = factory.core().v1().services();
        let pods = factory.core().v1().pod_endpoints();
        let ours = factory.with_labels(&format!("{MANAGED_BY}={MANAGER}"));
        let slices = ours.discovery().v1().endpoint_slices();

        let selecting = services.add_index("selecting", selected_label)?;
        let slices_of = slices.add_index("service", slices::service_key)?;
        // Finds the pods of a service.
        pods.indexer().add_label_index()?;

        let runner = ControllerRunner::new(Workqueue::builder().name("endpoint-slices").build())
            .workers(4)
            .watches(&services, own_key)
            .watches(&pods, keys_in_index(&selecting, labels_of))
            .watches(&slices, |slice: &Cached<EndpointSlice>| slices::service_key(slice));
        let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
        let shared = Arc::new(Shared { client, services, pods, slices, slices_of });
        let reconcile = move |request: ReconcileRequest| {
            let shared = Arc::clone(&shared);
            async move { shared.reconcile(&request).await }
        };
        let (mut running, stop) = (JoinSet::new(), shutdown.clone());
        running.spawn(async move { Ok(runner.run(reconcile, stop).await?) });
        factory.start();
        Ok(Self { monitor, running, shutdown, factory })
    }

    /// Stops the controller at once: requests in flight are dropped, and nothing is cleaned up.
    pub(crate) fn kill(self) {
        drop(self);
    }

    pub(crate) async fn shutdown(mut self) -> Result<(), Failure> {
        self.shutdown.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        self.factory.shutdown().await;
        Ok(())
    }
}

impl Shared {
    async fn reconcile(&self, request: &ReconcileRequest) -> Result<Reconciled, kube::Error> {
        let service = self.services.get(request.key());
        let pods = service.as_ref().map(|service| self.pods_of(service)).unwrap_or_default();
        let pods = pods.iter().map(|pod| &**pod);
        let desired = service.map(|service| slices::desired(&service, pods)).unwrap_or_default();
        let existing = self.slices_of.get(request.key());
        let api = Api::<EndpointSlice>::namespaced(
            self.client.clone(),
            request.key().namespace().unwrap_or_default(),
        );
        let name = |slice: &EndpointSlice| slice.metadata.name.clone().unwrap_or_default();
        for slice in &desired {
            let is_there =
                existing.iter().any(|other| name(other) == name(slice) && slices::is_same(other, slice));
            if !is_there {
                let apply = PatchParams::apply(MANAGER).force();
                let (name, patch) = (name(slice), Patch::Apply(slice));
                let write = api.patch(&name, &apply, &patch);
                request.writes().track(&self.slices, slice, write).await?;
            }
        }
        for slice in existing.iter().filter(|slice| !desired.iter().any(|other| name(other) == name(slice))) {
            let (name, by_default) = (name(slice), DeleteParams::default());
            let deletion = api.delete(&name, &by_default);
            match request.writes().track_deletion(&self.slices, slice, deletion).await {
                // The garbage collector has already deleted the slice.
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                answer => drop(answer?),
            }
        }
        Ok(Reconciled::Done)
    }

    fn pods_of(&self, service: &Cached<Service>) -> Vec<Cached<PodEndpoint>> {
        let selector = slices::selector(service);
        if selector.is_empty() {
            return Vec::new();
        }
        let selector: Selector = selector.into_iter().collect();
        self.pods.lister().namespace(service.namespace().unwrap_or_default()).list(&selector)
    }
}

/// Returns one label of the service's selector. A selected pod has all labels of the selector, so
/// one is enough for the index.
fn selected_label(service: &Service) -> Option<Label> {
    let (label, value) = slices::selector(service).into_iter().next()?;
    Some((service.metadata.namespace.clone()?, label, value))
}

fn labels_of(pod: &Cached<PodEndpoint>) -> Vec<Label> {
    let namespace = pod.namespace().unwrap_or_default();
    let labels = pod.metadata.labels.iter().flatten();
    labels.map(|(label, value)| (namespace.to_owned(), label.clone(), value.clone())).collect()
}
