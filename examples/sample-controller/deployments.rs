//! A substitute for the Deployment controller, for the simulator: it reports all replicas as
//! available.

use informer_controller::{ControllerRunner, ReconcileRequest, Reconciled, Workqueue, own_key};
use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::controller::available;

pub(crate) async fn run(client: Client, namespace: &str, shutdown: CancellationToken) -> Result<(), Failure> {
    let factory = SharedInformerFactory::new(client.clone()).in_namespace(namespace);
    let deployments = factory.apps().v1().deployments();
    let runner = ControllerRunner::new(Workqueue::builder().name("deployments").build());
    let runner = runner.watches(&deployments, own_key);
    factory.start();
    let api = Api::namespaced(client, namespace);
    let reconcile = move |request| reconcile(request, deployments.clone(), api.clone());
    runner.run(reconcile, shutdown).await?;
    factory.shutdown().await;
    Ok(())
}

async fn reconcile(
    request: ReconcileRequest,
    deployments: SharedIndexInformer<Deployment>,
    api: Api<Deployment>,
) -> Result<Reconciled, kube::Error> {
    let Some(deployment) = deployments.get(request.key()) else { return Ok(Reconciled::Done) };
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    if available(&deployment) != replicas {
        let status = json!({ "status": { "replicas": replicas, "availableReplicas": replicas } });
        let patch = Patch::Merge(status);
        let params = PatchParams::default();
        let update = api.patch_status(deployment.name(), &params, &patch);
        request.writes().track(&deployments, &*deployment, update).await?;
    }
    Ok(Reconciled::Done)
}
