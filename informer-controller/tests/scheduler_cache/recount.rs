//! [`Recount`]: the used resources of each node from plain lists, without an informer.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::time::Duration;

use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::resources::Resources;
use crate::scheduler::{POOL, Shared};
use crate::views::{NodeRoom, PodDemand};

pub(crate) struct Recount {
    allocatable: BTreeMap<String, Resources>,
    pub(crate) sums: BTreeMap<String, Resources>,
    /// The number of pods in the namespace, without completed pods.
    pub(crate) pods: usize,
    /// The number of pods in the namespace that have no node, without completed pods.
    pub(crate) waiting: usize,
}

impl Recount {
    pub(crate) async fn take(client: &Client, namespace: &str) -> Result<Self, kube::Error> {
        let of_pool = ListParams::default().labels(&format!("{POOL}={namespace}"));
        let nodes = list::<NodeRoom>(&Api::all(client.clone()), of_pool).await?;
        let alive = ListParams::default().fields("status.phase!=Succeeded,status.phase!=Failed");
        let pods = list::<PodDemand>(&Api::all(client.clone()), alive).await?;
        let name = |node: &NodeRoom| node.metadata.name.clone().unwrap_or_default();
        let allocatable: BTreeMap<_, _> = nodes.iter().map(|node| (name(node), node.allocatable())).collect();
        let mut sums: BTreeMap<_, _> =
            allocatable.keys().map(|name| (name.clone(), Resources::default())).collect();
        for pod in &pods {
            let node = pod.spec.node_name.as_ref().and_then(|node| sums.get_mut(node));
            if let Some(sum) = node {
                *sum += pod.request();
            }
        }
        let here = || pods.iter().filter(|pod| pod.metadata.namespace.as_deref() == Some(namespace));
        let waiting = here().filter(|pod| pod.spec.node_name.is_none()).count();
        Ok(Self { pods: here().count(), waiting, allocatable, sums })
    }

    /// Returns the nodes with more pods than fit.
    pub(crate) fn overfull(&self) -> Vec<&str> {
        let over = self.sums.iter().filter(|(name, sum)| sum.left_of(self.allocatable[*name]).is_none());
        over.map(|(name, _)| name.as_str()).collect()
    }

    /// Waits until a scheduler's cache equals this recount and has no assumed pods. Nothing changes
    /// meanwhile, so the cache can differ only by undelivered events.
    pub(crate) async fn equals(&self, shared: &Shared) -> Result<(), Box<dyn Error>> {
        let mut changes = shared.changes();
        let equal = async {
            // Each comparison uses one state of the cache, with its sums and assumed pods.
            while !self.is_equal(shared) {
                changes.changed().await?;
            }
            Ok::<_, Box<dyn Error>>(())
        };
        match timeout(Duration::from_secs(60), equal).await {
            Ok(outcome) => outcome,
            Err(_) => Err(self.difference(shared).into()),
        }
    }

    fn is_equal(&self, shared: &Shared) -> bool {
        let cache = shared.cache();
        cache.assumed() == 0 && cache.sums() == self.sums
    }

    fn difference(&self, shared: &Shared) -> String {
        let cache = shared.cache();
        let mut text =
            format!("{} pods are still assumed; the cache differs from a recount", cache.assumed());
        let sums = cache.sums();
        let differ = self.sums.iter().filter(|(name, sum)| sums.get(*name) != Some(sum));
        for (name, sum) in differ.take(5) {
            text += &format!("; {name}: {:?} instead of {sum:?}", sums.get(name));
        }
        text
    }
}

/// Lists all objects, in pages.
async fn list<K>(api: &Api<K>, mut params: ListParams) -> Result<Vec<K>, kube::Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let mut items = Vec::new();
    params.limit = Some(500);
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(items);
        }
    }
}
