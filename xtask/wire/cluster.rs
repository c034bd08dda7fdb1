//! [`Cluster`]: creates pods like a controller, and updates their status like a kubelet.

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::pods::{NAMESPACES, Recipe, namespace};

const CONCURRENCY: usize = 16;

#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
    objects: usize,
}

impl Cluster {
    pub(crate) fn new(client: Client, objects: usize) -> Self {
        Self { client, objects }
    }

    /// Creates all namespaces and pods.
    pub(crate) async fn create(&self) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for number in 0..NAMESPACES {
            let metadata = ObjectMeta { name: Some(namespace(number)), ..ObjectMeta::default() };
            namespaces
                .create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() })
                .await?;
        }
        let params =
            PostParams { field_manager: Some("kube-controller-manager".to_owned()), ..PostParams::default() };
        self.each(async |recipe| {
            let pod: Pod = serde_json::from_value(recipe.pod()).context("the generated pod is invalid")?;
            self.pods(&recipe).create(&params, &pod).await?;
            Ok(())
        })
        .await
    }

    /// Updates the status of each pod. `pass` counts these updates, from 0.
    pub(crate) async fn update(&self, pass: usize) -> anyhow::Result<()> {
        let params = PatchParams { field_manager: Some("kubelet".to_owned()), ..PatchParams::default() };
        self.each(async |recipe| {
            let patch = Patch::Merge(json!({ "status": recipe.status(pass) }));
            self.pods(&recipe).patch_status(&recipe.name(), &params, &patch).await?;
            Ok(())
        })
        .await
    }

    fn pods(&self, recipe: &Recipe) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &recipe.namespace())
    }

    async fn each(&self, act: impl AsyncFn(Recipe) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let acts = stream::iter(0..self.objects).map(|number| act(Recipe::new(number)));
        acts.buffer_unordered(CONCURRENCY).try_collect().await
    }
}
