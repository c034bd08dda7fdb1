//! A controller: each namespace with the label `team` gets a config map with the name of the team.
//!
//! ```text
//! cargo run --example controller        # with the current context of the kubeconfig, until Ctrl-C
//! cargo test -p examples --example controller     # on the simulator
//! ```

use std::error::Error;

use informer_controller::{ControllerRunner, ReconcileRequest, Reconciled, Workqueue, own_key};
use informer_factory::SharedInformerFactory;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = CancellationToken::new();
    let on_ctrl_c = shutdown.clone();
    tokio::spawn(async move {
        _ = tokio::signal::ctrl_c().await;
        on_ctrl_c.cancel();
    });
    run(Client::try_default().await?, shutdown).await
}

async fn run(client: Client, shutdown: CancellationToken) -> Result<(), Box<dyn Error>> {
    let factory = SharedInformerFactory::new(client.clone());
    let namespaces = factory.core().v1().namespaces();
    let runner = ControllerRunner::new(Workqueue::builder().name("teams").build());
    let runner = runner.watches(&namespaces, own_key);
    factory.start();
    let reconcile = move |request: ReconcileRequest| {
        let (namespaces, client) = (namespaces.clone(), client.clone());
        async move {
            let Some(namespace) = namespaces.get(request.key()) else { return Ok(Reconciled::Done) };
            let Some(team) = namespace.labels().get("team") else { return Ok(Reconciled::Done) };
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "team" }, "data": { "team": team },
            });
            let maps = Api::<ConfigMap>::namespaced(client, &namespace.name_any());
            maps.patch("team", &PatchParams::apply("teams"), &Patch::Apply(map)).await?;
            Ok::<_, kube::Error>(Reconciled::Done)
        }
    };
    runner.run(reconcile, shutdown).await?;
    factory.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use kube::api::{PostParams, WatchEvent, WatchParams};
    use kube_simulator::Simulator;

    use super::*;

    #[tokio::test]
    async fn labelled_namespace_gets_a_config_map() -> Result<(), Box<dyn Error>> {
        let simulator = Simulator::builder().built_in_kinds().start().await?;
        let (client, shutdown) = (simulator.client()?, CancellationToken::new());
        let maps = Api::<ConfigMap>::all(client.clone());
        let mut events = Box::pin(maps.watch(&WatchParams::default(), "0").await?);
        let namespace = json!({ "metadata": { "name": "shop", "labels": { "team": "blue" } } });
        let namespace: Namespace = serde_json::from_value(namespace)?;
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;

        let made = async {
            loop {
                match futures::StreamExt::next(&mut events).await {
                    Some(Ok(WatchEvent::Added(map))) if map.name_any() == "team" => break map,
                    Some(Ok(_)) => {}
                    other => panic!("the watch ended: {other:?}"),
                }
            }
        };
        let (map, outcome) = tokio::join!(
            async {
                let map = made.await;
                shutdown.cancel();
                map
            },
            run(client, shutdown.clone())
        );
        outcome?;
        assert_eq!(map.data.unwrap_or_default().get("team").map(String::as_str), Some("blue"));
        Ok(())
    }
}
