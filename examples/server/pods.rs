//! Pods to look at.

use std::error::Error;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::server::Server;

/// Creates pods, of three images, on some nodes. Nothing runs them: what they are to do is nobody's concern here.
pub(crate) async fn create(server: &Server, nodes: usize, pods: usize) -> Result<(), Box<dyn Error>> {
    for n in 0..pods {
        let image = ["nginx", "redis", "postgres"][n % 3];
        server
            .create::<Pod>(json!({
                "metadata": { "name": format!("pod-{n}"), "labels": { "app": image } },
                "spec": {
                    "nodeName": format!("node-{}", n % nodes),
                    "containers": [{ "name": "main", "image": image }],
                    "terminationGracePeriodSeconds": 0,
                },
            }))
            .await?;
    }
    Ok(())
}
