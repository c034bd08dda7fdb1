//! A client with an informer of this workspace. The argument FORM selects how the informer stores
//! objects, for example compressed.

use std::sync::Arc;

use anyhow::{Context, bail};
use informer_factory::informer_reflector::{ReflectorConfig, Storage};
use informer_factory::{
    Cached, FactoryBuilder, Handlers, Informer, SharedIndexInformer, SharedInformerFactory, connect,
};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::meter::Meter;
use crate::protocol::{Plan, print, wait_for_start};

/// A slim view of a pod: its metadata without annotations and managed fields, and five fields.
#[derive(Informer, Serialize, Deserialize, Clone, Debug)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(prune("metadata.annotations"))]
struct SlimPod {
    metadata: ObjectMeta,
    #[allow(dead_code, reason = "decoded, as in a program that reads it")]
    spec: Option<SlimSpec>,
    #[allow(dead_code, reason = "decoded, as in a program that reads it")]
    status: Option<SlimStatus>,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded, as in a program that reads it")]
struct SlimSpec {
    node_name: Option<String>,
    service_account_name: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded, as in a program that reads it")]
struct SlimStatus {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    #[serde(rename = "hostIP")]
    host_ip: Option<String>,
}

/// Runs the client until the process ends. Returns only if an error occurs.
///
/// The process ends when its standard input ends (see [`wait_for_start`]), or when the benchmark
/// kills the process.
pub(crate) fn main() -> anyhow::Result<()> {
    let plan = Plan::from_args()?;
    let runtime = tokio::runtime::Runtime::new().context("cannot start a runtime")?;
    runtime.block_on(async {
        let config = kube::Config::new(plan.server.parse().context("the argument SERVER is not a URL")?);
        let client = connect(config, |_, tcp| Ok(tcp))?;
        let builder = SharedInformerFactory::builder(client)
            .reflector(ReflectorConfig::new().streaming_lists(!plan.is_list));
        let pods = |factory: &SharedInformerFactory| factory.core().v1().pods();
        let slim_pods = |factory: &SharedInformerFactory| factory.core().v1().slim_pods();
        match plan.form.as_str() {
            "decoded" => run(&plan, builder, pods).await,
            "encoded" => run(&plan, stored::<Pod>(builder, Storage::Encoded), pods).await,
            "compressed" => run(&plan, stored::<Pod>(builder, Storage::Compressed), pods).await,
            "slim" => run(&plan, builder, slim_pods).await,
            "slim, compressed" => {
                run(&plan, stored::<SlimPod>(builder, Storage::Compressed), slim_pods).await
            }
            form => bail!(
                "the argument FORM has the unknown value `{form}`; use `decoded`, `encoded`, `compressed`, \
                 `slim` or `slim, compressed`"
            ),
        }
    })
}

fn stored<K>(builder: FactoryBuilder, storage: Storage) -> FactoryBuilder
where
    K: kube::Resource + Serialize + DeserializeOwned + Send + Sync + 'static,
{
    builder.configure::<K>(move |it| it.storage(storage))
}

async fn run<K>(
    plan: &Plan,
    builder: FactoryBuilder,
    informer: fn(&SharedInformerFactory) -> SharedIndexInformer<K>,
) -> anyhow::Result<()>
where
    K: kube::Resource + Send + Sync + 'static,
{
    let meter = Arc::new(Meter::new(plan));
    let factory = builder.build();
    let pods = informer(&factory);
    let handlers: Vec<_> = (0..plan.handlers)
        .map(|number| pods.add_event_handler(handler::<K>(number, Arc::clone(&meter))))
        .collect();
    print("ready")?;
    wait_for_start()?;
    factory.start();
    factory.wait_for_cache_sync().await?;
    for handler in &handlers {
        handler.synced().wait().await?;
    }
    print(&format!("synced {}", pods.indexer().len()))?;
    let events = meter.done().await;
    meter.write_times(plan)?;
    print(&format!("done {events}"))?;
    std::future::pending().await
}

fn handler<K: Send + Sync + 'static>(number: usize, meter: Arc<Meter>) -> Handlers<K> {
    Handlers::new().on_update(move |_, new: &Cached<K>| {
        // API servers use numbers as resource versions.
        let version = new.resource_version().to_string().parse().unwrap_or_default();
        meter.observe(number, version);
    })
}
