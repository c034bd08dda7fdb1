//! [`FooController`]: for each `Foo`, it writes a Deployment and an entry in a directory (a `ConfigMap`), and reports
//! the Deployment's state in the status of the `Foo`. When a `Foo` is deleted, it removes the entry.
//!
//! Each step can be repeated, because the process can be killed after any step. The finalizer is added before the
//! entry, so that no entry is left behind when the `Foo` is deleted. The status is written last, because it reports
//! that all steps are done.

use std::sync::Arc;

use informer_controller::{
    ControllerRunner, KeyWrites, LeaderElector, LeadershipEnd, ReconcileRequest, Reconciled, Workqueue,
    controller_key, keys_in_index, own_key,
};
use informer_factory::{Cached, ObjectKey, SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use kube_runtime::events::{Event, EventType, Recorder, Reporter};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::foo::{Foo, FooIndices, FooInformers, FooStatus};

/// The name of the `ConfigMap` that has an entry for each `Foo`.
pub(crate) const DIRECTORY: &str = "foo-directory";

// The garbage collector cannot remove entries, only whole objects. So this finalizer keeps a
// deleted `Foo` until the controller has removed its entry.
const FINALIZER: &str = "sample.example.com/directory";

pub(crate) struct FooController {
    foos: SharedIndexInformer<Foo>,
    deployments: SharedIndexInformer<Deployment>,
    foo_api: Api<Foo>,
    deployment_api: Api<Deployment>,
    directory: Api<ConfigMap>,
    events: Recorder,
}

/// Keeps the caches of a namespace up to date, and reconciles its `Foo`s while this process is the
/// leader.
pub(crate) async fn run(
    client: Client,
    namespace: &str,
    mut elector: LeaderElector,
    shutdown: CancellationToken,
) -> Result<(), Failure> {
    let factory = SharedInformerFactory::new(client.clone()).in_namespace(namespace);
    let foos = factory.sample().v1alpha1().foos();
    let deployments = factory.apps().v1().deployments();
    let name = |deployment: &Cached<Deployment>| [deployment.name().to_owned()];
    let runner = ControllerRunner::new(Workqueue::builder().name("foos").build())
        .workers(4)
        .watches(&foos, own_key)
        .watches(&deployments, controller_key::<Foo, Deployment>)
        // A Deployment that belongs to no Foo can have the name that a Foo needs for its own Deployment.
        // Changes of the foreign Deployment queue this Foo, so that the Foo gets its Deployment when the
        // foreign one is deleted.
        .watches(&deployments, keys_in_index(&foos.by_deployment_index(), name));
    factory.start();
    match shutdown.run_until_cancelled(factory.wait_for_cache_sync()).await {
        Some(synced) => synced?,
        None => return Ok(()),
    }
    let controller = Arc::new(FooController {
        foos,
        deployments,
        foo_api: Api::namespaced(client.clone(), namespace),
        deployment_api: Api::namespaced(client.clone(), namespace),
        directory: Api::namespaced(client.clone(), namespace),
        events: Recorder::new(client, Reporter { controller: "foo-controller".to_owned(), instance: None }),
    });
    let reconcile = move |request: ReconcileRequest| {
        let controller = Arc::clone(&controller);
        async move { controller.reconcile(&request).await }
    };
    let end = elector.run(shutdown, |stop| runner.run(reconcile, stop)).await;
    factory.shutdown().await;
    match end {
        LeadershipEnd::NeverLed => Ok(()),
        LeadershipEnd::Finished(synced) => Ok(synced?),
        LeadershipEnd::Lost(_) => Err("the lease is lost; restart this process".into()),
    }
}

impl FooController {
    async fn reconcile(&self, request: &ReconcileRequest) -> Result<Reconciled, Failure> {
        let Some(foo) = self.foos.get(request.key()) else { return Ok(Reconciled::Done) };
        if foo.meta().deletion_timestamp.is_some() {
            return self.clean_up(&foo, request.writes()).await;
        }
        let is_new_generation =
            foo.status.as_ref().map(|status| status.observed_generation) != foo.metadata.generation;
        if is_new_generation {
            self.enter_in_directory(&foo, request.writes()).await?;
        }
        let deployment = self.ensure_deployment(&foo, request.writes()).await?;
        let name = &foo.spec.deployment_name;
        let status = FooStatus {
            observed_generation: foo.metadata.generation.unwrap_or_default(),
            available_replicas: deployment.as_ref().map_or(0, available),
            problem: deployment
                .is_none()
                .then(|| format!("the Deployment {name:?} exists already and does not belong to this Foo")),
        };
        self.report(&foo, status, request.writes()).await?;
        Ok(Reconciled::Done)
    }

    async fn enter_in_directory(
        &self,
        foo: &Cached<Foo>,
        writes: &KeyWrites<ObjectKey>,
    ) -> Result<(), Failure> {
        let mut finalizers = foo.finalizers().to_vec();
        if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            self.set_finalizers(foo, finalizers, writes).await?;
        }
        let entry = Patch::Merge(json!({ "data": { foo.name(): foo.spec.deployment_name } }));
        self.directory.patch(DIRECTORY, &PatchParams::default(), &entry).await?;
        Ok(())
    }

    /// Removes the entry of a deleted `Foo`, and then the finalizer. The garbage collector deletes
    /// the Deployment, which the `Foo` owns.
    async fn clean_up(
        &self,
        foo: &Cached<Foo>,
        writes: &KeyWrites<ObjectKey>,
    ) -> Result<Reconciled, Failure> {
        let mut finalizers = foo.finalizers().to_vec();
        if finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            let entry = Patch::Merge(json!({ "data": { foo.name(): null } }));
            self.directory.patch(DIRECTORY, &PatchParams::default(), &entry).await?;
            finalizers.retain(|finalizer| finalizer != FINALIZER);
            self.set_finalizers(foo, finalizers, writes).await?;
        }
        Ok(Reconciled::Done)
    }

    /// Writes the finalizers of a `Foo`. Fails if the object on the server is newer than `foo`.
    async fn set_finalizers(
        &self,
        foo: &Cached<Foo>,
        finalizers: Vec<String>,
        writes: &KeyWrites<ObjectKey>,
    ) -> Result<(), Failure> {
        let version = foo.resource_version().to_string();
        let patch =
            Patch::Merge(json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } }));
        let params = PatchParams::default();
        writes.track(&self.foos, &**foo, self.foo_api.patch(foo.name(), &params, &patch)).await?;
        Ok(())
    }

    /// Creates or updates the Deployment of the `Foo`, if necessary, and returns it. Returns `None` if a
    /// Deployment with this name exists and does not belong to the `Foo`.
    async fn ensure_deployment(
        &self,
        foo: &Cached<Foo>,
        writes: &KeyWrites<ObjectKey>,
    ) -> Result<Option<Deployment>, Failure> {
        let name = &foo.spec.deployment_name;
        let key = ObjectKey::new(foo.namespace(), name);
        let Some(deployment) = self.deployments.get(&key) else {
            let wanted = deployment(foo)?;
            let params = PostParams::default();
            let create = self.deployment_api.create(&params, &wanted);
            return Ok(Some(writes.track(&self.deployments, &wanted, create).await?));
        };
        let is_own = |owner: &_| foo.controller_owner_ref(&()).as_ref() == Some(owner);
        if !deployment.owner_references().iter().any(is_own) {
            return Ok(None);
        }
        if deployment.spec.as_ref().and_then(|spec| spec.replicas) == Some(foo.spec.replicas) {
            return Ok(Some(Deployment::clone(&deployment)));
        }
        let replicas = Patch::Merge(json!({ "spec": { "replicas": foo.spec.replicas } }));
        let params = PatchParams::default();
        let patch = self.deployment_api.patch(name, &params, &replicas);
        Ok(Some(writes.track(&self.deployments, &*deployment, patch).await?))
    }

    /// Writes the status of a `Foo` if it has changed. Before the write, sends a Kubernetes event
    /// if `problem` or `observed_generation` has changed.
    async fn report(
        &self,
        foo: &Cached<Foo>,
        status: FooStatus,
        writes: &KeyWrites<ObjectKey>,
    ) -> Result<(), Failure> {
        let before = foo.status.clone().unwrap_or_default();
        if before == status {
            return Ok(());
        }
        let (type_, reason, note) = match &status.problem {
            Some(problem) => (EventType::Warning, "NameTaken", problem.clone()),
            None => (EventType::Normal, "Synced", "the Deployment is in its desired state".to_owned()),
        };
        let needs_event =
            before.problem != status.problem || before.observed_generation != status.observed_generation;
        if needs_event {
            let (reason, action) = (reason.to_owned(), "Reconcile".to_owned());
            let event = Event { type_, reason, note: Some(note), action, secondary: None };
            self.events.publish(&event, &foo.object_ref(&())).await?;
        }
        let patch = Patch::Merge(json!({ "status": status }));
        let params = PatchParams::default();
        let write = self.foo_api.patch_status(foo.name(), &params, &patch);
        writes.track(&self.foos, &**foo, write).await?;
        Ok(())
    }
}

pub(crate) fn available(deployment: &Deployment) -> i32 {
    deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

fn deployment(foo: &Cached<Foo>) -> Result<Deployment, serde_json::Error> {
    let labels = json!({ "app": "nginx", "controller": foo.name() });
    serde_json::from_value(json!({
        "metadata": { "name": foo.spec.deployment_name, "ownerReferences": [foo.controller_owner_ref(&())] },
        "spec": {
            "replicas": foo.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    }))
}
