//! [`Controller`]: keeps the slices of each service as they should be.
//!
//! A change of a pod has to bring the services that select it, and there are more services than one wants to look at each
//! time. So services are indexed by one pair of label and value of their selectors, and a pod looks up its own labels. That
//! brings all that select it, and perhaps some that don't; which it is, the call for the service finds out.

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

/// A controller that runs: all that a process of its own would have, so that dropping it is what killing such a process is.
pub(crate) struct Controller {
    monitor: RunnerMonitor,
    running: JoinSet<Result<(), Failure>>,
    shutdown: CancellationToken,
    factory: SharedInformerFactory,
}

/// What a call works with.
struct Desk {
    client: Client,
    services: SharedIndexInformer<Service>,
    pods: SharedIndexInformer<PodEndpoint>,
    slices: SharedIndexInformer<EndpointSlice>,
    slices_of: Index<EndpointSlice, ObjectKey>,
}

impl Controller {
    pub(crate) fn start(client: Client, namespace: &str) -> Result<Self, Failure> {
        let factory = SharedInformerFactory::builder(client.clone()).namespace(namespace).build();
        let services = factory.core().v1().services();
        let pods = factory.core().v1().pod_endpoints();
        let ours = factory.with_labels(&format!("{MANAGED_BY}={MANAGER}"));
        let slices = ours.discovery().v1().endpoint_slices();

        let selecting = services.add_index("selecting", selected_label)?;
        let slices_of = slices.add_index("service", slices::service_key)?;
        // For the way back, from a service to its pods.
        pods.indexer().add_label_index()?;

        let runner = ControllerRunner::new(Workqueue::builder().name("endpoint-slices").build())
            .workers(4)
            .watches(&services, own_key)
            .watches(&pods, keys_in_index(&selecting, labels_of))
            .watches(&slices, |slice: &Cached<EndpointSlice>| slices::service_key(slice));
        let (monitor, shutdown) = (runner.monitor(), CancellationToken::new());
        let desk = Arc::new(Desk { client, services, pods, slices, slices_of });
        let reconcile = move |request: ReconcileRequest| {
            let desk = Arc::clone(&desk);
            async move { desk.reconcile(&request).await }
        };
        let (mut running, stop) = (JoinSet::new(), shutdown.clone());
        running.spawn(async move { Ok(runner.run(reconcile, stop).await?) });
        factory.start();
        Ok(Self { monitor, running, shutdown, factory })
    }

    pub(crate) fn monitor(&self) -> &RunnerMonitor {
        &self.monitor
    }

    /// Ends it in the midst of what it does: requests are given up where they are, and nothing is put in order.
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

impl Desk {
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
                // The garbage collector may be quicker.
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

/// One label is enough to be found by: whoever has all that a service selects by has this one.
fn selected_label(service: &Service) -> Option<Label> {
    let (label, value) = slices::selector(service).into_iter().next()?;
    Some((service.metadata.namespace.clone()?, label, value))
}

fn labels_of(pod: &Cached<PodEndpoint>) -> Vec<Label> {
    let namespace = pod.namespace().unwrap_or_default();
    let labels = pod.metadata.labels.iter().flatten();
    labels.map(|(label, value)| (namespace.to_owned(), label.clone(), value.clone())).collect()
}
