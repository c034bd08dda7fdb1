//! The program of `cargo xtask definitions`. It installs the custom resource definitions of Gateway API on the
//! temporary server of `$KUBECONFIG`, and watches each kind of Gateway API with generated types and accessors.

mod groups;

use std::error::Error;
use std::time::Duration;

use informer_factory::{SharedIndexInformer, SharedInformerFactory, WaitOutcome};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::groups::CustomGroups as _;
use crate::groups::gateway_v1::{Gateway, GatewayClass, HttpRoute, ReferenceGrant};

/// Timeout of each wait for a store or for the server. A working program never reaches it.
const TIMEOUT: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut config = kube::Config::infer().await?;
    config.default_retry = false;
    let client = Client::try_from(config)?;
    let installed = install(&client).await?;

    let factory = SharedInformerFactory::new(client.clone()).in_namespace("default");
    let v1 = factory.gateway().v1();
    let (classes, gateways) = (v1.gateway_classes(), v1.gateways());
    let (routes, grants) = (v1.http_routes(), v1.reference_grants());
    let others = (v1.grpc_routes(), v1.tls_routes(), v1.tcp_routes(), v1.udp_routes(), v1.listener_sets());
    let more = (v1.backend_tls_policies(), factory.gateway().v1beta1().gateways());
    let by_host =
        routes.add_index("host", |route: &HttpRoute| route.spec.hostnames.clone().unwrap_or_default())?;
    factory.start();
    factory.wait_for_cache_sync_within(TIMEOUT).await?;

    created::<GatewayClass>(
        &classes,
        Api::all(client.clone()),
        json!({ "metadata": { "name": "plain" }, "spec": { "controllerName": "example.com/plain" } }),
    )
    .await?;
    let listener = json!({ "name": "http", "port": 80, "protocol": "HTTP" });
    created::<Gateway>(
        &gateways,
        Api::default_namespaced(client.clone()),
        json!({ "metadata": { "name": "front" }, "spec": { "gatewayClassName": "plain", "listeners": [listener] } }),
    )
    .await?;
    let backend = json!({ "name": "shop", "port": 8080, "weight": 1 });
    created::<HttpRoute>(
        &routes,
        Api::default_namespaced(client.clone()),
        json!({
            "metadata": { "name": "shop" },
            "spec": {
                "parentRefs": [{ "name": "front" }],
                "hostnames": ["shop.example.com"],
                "rules": [{
                    "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }],
                    "backendRefs": [backend],
                }],
            },
        }),
    )
    .await?;
    created::<ReferenceGrant>(
        &grants,
        Api::default_namespaced(client),
        json!({
            "metadata": { "name": "shop" },
            "spec": {
                "from": [{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default" }],
                "to": [{ "group": "", "kind": "Service" }],
            },
        }),
    )
    .await?;

    for route in by_host.get("shop.example.com") {
        let rules = route.spec.rules.iter().flatten();
        let backends = rules.flat_map(|rule| rule.backend_refs.iter().flatten());
        println!("{} routes to {:?}", route.key(), backends.map(|backend| &backend.name).collect::<Vec<_>>());
    }
    if by_host.get("shop.example.com").len() != 1 {
        return Err("the index `host` does not have one HTTPRoute for shop.example.com".into());
    }
    println!("{installed} kinds of Gateway API are installed and watched by generated informers");
    drop((others, more));
    factory.shutdown().await;
    Ok(())
}

/// Creates an object from JSON on the server, and checks that the informer's store contains it.
async fn created<K>(informer: &SharedIndexInformer<K>, api: Api<K>, mut object: Value) -> Result<(), Failure>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
    K: PartialEq + Send + Sync + 'static,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    let object = api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    let outcome = informer.wait_for_write(&object, TIMEOUT).await;
    let stored = informer.indexer().get_by_key(&match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    });
    let same = stored.is_some_and(|stored| stored.meta().uid == object.meta().uid);
    if outcome != WaitOutcome::Reached || !same {
        return Err(format!("the store lacks {} {}: {outcome:?}", K::kind(&()), object.name_any()).into());
    }
    Ok(())
}

/// Installs the custom resource definitions in the files that the command line names, and waits
/// until the server serves their kinds. Returns the number of definitions.
async fn install(client: &Client) -> Result<usize, Failure> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut names = Vec::new();
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(path)?;
        for value in serde_saphyr::from_multiple::<Value>(&text)?.into_iter().filter(|value| !value.is_null())
        {
            let definition: CustomResourceDefinition = serde_json::from_value(value)?;
            names.push(definitions.create(&PostParams::default(), &definition).await?.name_any());
        }
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    tokio::time::timeout(TIMEOUT, async {
        for name in &names {
            while !is_established(&definitions.get(name).await?) {
                ticks.tick().await;
            }
        }
        Ok::<_, kube::Error>(())
    })
    .await??;
    Ok(names.len())
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}
