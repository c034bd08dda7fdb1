//! Creates pods for the examples.

use std::error::Error;

use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::server::Server;

/// Creates `pods` pods, which use three images and `nodes` nodes in turn. The nodes do not exist,
/// so the pods do not run.
pub(crate) async fn create(server: &Server, nodes: usize, pods: usize) -> Result<(), Box<dyn Error>> {
    ensure_service_account(server).await?;
    for n in 0..pods {
        let image = ["nginx", "redis", "postgres"][n % 3];
        server
            .create::<Pod>(json!({
                "metadata": { "name": format!("pod-{n}"), "labels": { "app": image } },
                "spec": {
                    // No other run uses this node name. A real cluster deletes pods whose node has been missing
                    // for a grace period. If an earlier run had used the name, that period could already be
                    // over, and the cluster would delete the new pods at once.
                    "nodeName": format!("{}-{}", server.namespace, n % nodes),
                    "containers": [{ "name": "main", "image": image }],
                    "terminationGracePeriodSeconds": 0,
                },
            }))
            .await?;
    }
    Ok(())
}

/// Creates the service account `default` unless it exists, because a real server rejects pods
/// without it. On a real cluster, a controller creates the account with a delay.
async fn ensure_service_account(server: &Server) -> Result<(), Box<dyn Error>> {
    let accounts = Api::<ServiceAccount>::namespaced(server.client.clone(), &server.namespace);
    let account = serde_json::from_value(json!({ "metadata": { "name": "default" } }))?;
    match accounts.create(&PostParams::default(), &account).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        answer => drop(answer?),
    }
    Ok(())
}
