//! The scenario: two controller processes contend for a lease, and the leader is killed during its work.

use std::collections::BTreeSet;
use std::ops::Range;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use informer_factory::SharedInformerFactory;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, CustomResourceExt, Resource, ResourceExt};
use kube_runtime::wait::{await_condition, conditions};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::controller::{DIRECTORY, available};
use crate::foo::{Foo, FooSpec};
use crate::{Failure, LEASE, deployments};

const FOOS: usize = 100;

/// The first leader is killed when at least this many of the [`FOOS`] have a Deployment.
const KILLED_AT: usize = 8;

/// Timeout of waits for changes in the cluster; a working program never reaches it.
const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) async fn run(client: &Client, url: Option<&str>) -> Result<(), Failure> {
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let apply = PatchParams::apply("sample-controller");
    definitions.patch("foos.sample.example.com", &apply, &Patch::Apply(Foo::crd())).await?;
    let established = conditions::is_crd_established();
    timeout(TIMEOUT, await_condition(definitions, "foos.sample.example.com", established)).await??;

    let namespaces = Api::<Namespace>::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "generateName": "sample-" } }))?;
    let namespace = namespaces.create(&PostParams::default(), &namespace).await?.name_any();
    let scenario =
        Scenario { client: client.clone(), namespace: namespace.clone(), url: url.map(str::to_owned) };
    let shutdown = CancellationToken::new();
    let simulated = scenario.url.is_some();
    let deployment_controller = simulated.then(|| {
        let (client, shutdown) = (client.clone(), shutdown.clone());
        let namespace = namespace.clone();
        tokio::spawn(async move { deployments::run(client, &namespace, shutdown).await })
    });
    scenario.run().await?;
    shutdown.cancel();
    if let Some(deployment_controller) = deployment_controller {
        deployment_controller.await??;
    }
    namespaces.delete(&namespace, &DeleteParams::background()).await?;
    Ok(())
}

struct Scenario {
    client: Client,
    namespace: String,
    /// The URL of the simulator, if the scenario uses one.
    url: Option<String>,
}

/// A controller process. Dropping it kills the process.
struct Process {
    name: &'static str,
    child: Child,
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Scenario {
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn controller(&self, name: &'static str) -> Result<Process, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "controller",
            "--until-input-ends",
            "--namespace",
            &self.namespace,
            "--identity",
            name,
        ]);
        command.stdin(Stdio::piped());
        if let Some(url) = &self.url {
            command.args(["--url", url]);
        }
        Ok(Process { name, child: command.spawn()? })
    }

    /// Kills the leader during its work, and checks that the next leader brings all `Foo`s into
    /// their desired state.
    async fn run(&self) -> Result<(), Failure> {
        let (foos, params) = (self.api::<Foo>(), PostParams::default());
        let directory = serde_json::from_value(json!({ "metadata": { "name": DIRECTORY } }))?;
        self.api::<ConfigMap>().create(&params, &directory).await?;
        // Use the name of the last Foo's Deployment, so that the controller cannot create that Deployment.
        let intruder = deployment(&foo(FOOS - 1).spec.deployment_name)?;
        self.api::<Deployment>().create(&params, &intruder).await?;
        for n in 0..FOOS {
            foos.create(&params, &foo(n)).await?;
        }
        let mut processes = vec![self.controller("one")?, self.controller("two")?];
        let killed = self.kill_leader(&mut processes).await?;

        // The lease has usually not expired yet, so no process leads. The next leader must handle
        // the following changes.
        foos.delete("foo-0", &DeleteParams::default()).await?;
        let spec = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
        foos.patch("foo-1", &PatchParams::default(), &spec).await?;
        processes.push(self.controller("three")?);
        until("all Foos except one in their desired state", async || {
            self.are_in_desired_state(1..FOOS - 1).await
        })
        .await?;
        let last = FOOS - 1..FOOS;
        until("an event with the reason NameTaken for the last Foo", async || {
            self.have_event("NameTaken", last.clone()).await
        })
        .await?;
        self.api::<Deployment>().delete(&intruder.name_any(), &DeleteParams::background()).await?;
        until("all Foos in their desired state", async || self.are_in_desired_state(1..FOOS).await).await?;
        until("events of synced Foos", async || self.have_event("Synced", 1..FOOS).await).await?;
        let leader = self.lease().await?;
        println!("all {} Foos are in their desired state; {} is the new leader", FOOS - 1, leader.0);
        assert!(leader.1 > 0 && leader.0 != killed, "{leader:?}");
        Ok(())
    }

    /// Kills the leader process once some Deployments exist. Returns the name of this process.
    async fn kill_leader(&self, processes: &mut Vec<Process>) -> Result<&'static str, Failure> {
        let factory = SharedInformerFactory::new(self.client.clone()).in_namespace(&self.namespace);
        let (sender, mut made) = unbounded_channel();
        let _handler = factory
            .apps()
            .v1()
            .deployments()
            .add_handlers(|handlers| handlers.on_add(move |_, _| _ = sender.send(())));
        factory.start();
        factory.wait_for_cache_sync().await?;
        let mut leader = String::new();
        until("a leader", async || {
            leader = self.lease().await?.0;
            Ok(!leader.is_empty())
        })
        .await?;
        let place = processes
            .iter()
            .position(|process| process.name == leader)
            .ok_or("the lease is held by a process that does not belong to this scenario")?;
        // The leader continues to work during this loop. `swap_remove` kills it directly after the loop: a
        // request before the kill would give the leader time to complete its work.
        let first = async {
            for _ in 0..=KILLED_AT {
                made.recv().await.ok_or("the informer has stopped")?;
            }
            Ok::<_, Failure>(())
        };
        timeout(TIMEOUT, first).await.map_err(|_| "timed out waiting for the first Deployments")??;
        let killed = processes.swap_remove(place).name;
        // One Deployment, the intruder, does not belong to a Foo.
        let made = self.api::<Deployment>().list(&ListParams::default()).await?.items.len() - 1;
        println!("{killed} was killed after {made} of {FOOS} Deployments were created");
        assert!(made < FOOS - 1, "the leader had completed its work before it was killed");
        factory.shutdown().await;
        Ok(killed)
    }

    /// Returns the holder of the lease (empty if there is none), and how many times the holder has changed.
    async fn lease(&self) -> Result<(String, i32), Failure> {
        let spec = self.api::<Lease>().get_opt(LEASE).await?.and_then(|lease| lease.spec).unwrap_or_default();
        Ok((spec.holder_identity.unwrap_or_default(), spec.lease_transitions.unwrap_or_default()))
    }

    /// Returns whether each `Foo` with one of these numbers is in its desired state.
    ///
    /// Also returns `false` until the server has no traces of `foo-0`, which [`run`](Self::run)
    /// deletes: the `Foo`, its entry in the directory (a `ConfigMap`) and, if the server collects
    /// garbage, its Deployment.
    async fn are_in_desired_state(&self, numbers: Range<usize>) -> Result<bool, Failure> {
        let all = ListParams::default();
        let directory = self.api::<ConfigMap>().get(DIRECTORY).await?.data.unwrap_or_default();
        let foos = self.api::<Foo>().list(&all).await?.items;
        let deployments = self.api::<Deployment>().list(&all).await?.items;
        let runs_pods = self.runs_pods().await?;
        let is_right = |foo: &Foo| {
            let owner = foo.controller_owner_ref(&());
            let mut own = deployments.iter().filter(|it| it.owner_references().first() == owner.as_ref());
            let (Some(deployment), None, Some(status)) = (own.next(), own.next(), &foo.status) else {
                return false;
            };
            let wanted = foo.spec.replicas;
            deployment.name_any() == foo.spec.deployment_name
                && deployment.spec.as_ref().and_then(|spec| spec.replicas) == Some(wanted)
                && status.problem.is_none()
                && Some(status.observed_generation) == foo.metadata.generation
                && status.available_replicas == available(deployment)
                && (!runs_pods || status.available_replicas == wanted)
                && directory.contains_key(&foo.name_any())
        };
        let right = numbers.clone().filter(|n| {
            let name = foo(*n).name_any();
            foos.iter().any(|it| it.name_any() == name && is_right(it))
        });
        let first = foo(0).name_any();
        let is_gone = !directory.contains_key(&first) && foos.iter().all(|foo| foo.name_any() != first);
        // A server without garbage collection keeps the Deployment of the first `Foo`.
        let is_collected =
            deployments.iter().all(|it| it.owner_references().iter().all(|owner| owner.name != first));
        Ok(right.count() == numbers.len() && is_gone && (is_collected || !self.collects_garbage().await?))
    }

    /// Returns whether this server deletes the objects of deleted owners.
    async fn collects_garbage(&self) -> Result<bool, Failure> {
        // The simulator does. On a real server, the controller manager does, which also creates the
        // service account `default` of each namespace.
        Ok(self.url.is_some() || self.api::<ServiceAccount>().get_opt("default").await?.is_some())
    }

    /// Returns whether this cluster is expected to make the replicas of Deployments available. For
    /// example, a real cluster without nodes is not, because no pod runs there.
    async fn runs_pods(&self) -> Result<bool, Failure> {
        // A real cluster needs at least a node and a controller manager. On the simulator,
        // `deployments::run` reports the replicas as available.
        let nodes = Api::<Node>::all(self.client.clone()).list(&ListParams::default()).await?.items;
        Ok(self.url.is_some() || !nodes.is_empty() && self.collects_garbage().await?)
    }

    /// Returns whether each `Foo` with one of these numbers has an event with this reason.
    async fn have_event(&self, reason: &str, mut numbers: Range<usize>) -> Result<bool, Failure> {
        let events = self.api::<Event>().list(&ListParams::default()).await?.items;
        let with_reason = events.iter().filter(|event| event.reason.as_deref() == Some(reason));
        let reported: BTreeSet<_> =
            with_reason.filter_map(|event| event.regarding.as_ref()?.name.clone()).collect();
        Ok(numbers.all(|number| reported.contains(&foo(number).name_any())))
    }
}

fn foo(number: usize) -> Foo {
    let spec = FooSpec { deployment_name: format!("web-{number}"), replicas: 1 };
    Foo::new(&format!("foo-{number}"), spec)
}

/// Returns a Deployment that no `Foo` owns.
fn deployment(name: &str) -> Result<Deployment, serde_json::Error> {
    let labels = json!({ "app": "intruder" });
    let pod = json!({ "containers": [{ "name": "main", "image": "nginx" }] });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod });
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "replicas": 0, "selector": { "matchLabels": labels }, "template": template },
    }))
}

/// Polls a condition until it is true. Polling is necessary, because other processes do the work,
/// and only the server shows their results.
async fn until(what: &str, mut condition: impl AsyncFnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let polling = async {
        while !condition().await? {
            ticks.tick().await;
        }
        Ok(())
    };
    timeout(TIMEOUT, polling).await.map_err(|_| format!("timed out waiting for {what}"))?
}
