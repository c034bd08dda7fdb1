//! [`Recipe`]: the content of a pod, determined by its number.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::pods::parts::{Application, container, container_status, letters, volumes};

mod parts;

pub(crate) const NAMESPACES: usize = 50;

/// The number of pods of one `ReplicaSet`.
const REPLICAS: usize = 20;

/// The average number of pods on one node, if there are many pods.
const PODS_PER_NODE: usize = 40;

pub(crate) fn namespace(number: usize) -> String {
    format!("team-{number:02}")
}

#[derive(Debug)]
pub(crate) struct Recipe {
    application: Application,
    number: usize,
    /// The random end of the name, as the API server generates it.
    suffix: String,
    ip: String,
    host: usize,
    /// The container IDs, without the prefix `containerd://`.
    ids: Vec<String>,
    volume: String,
}

impl Recipe {
    pub(crate) fn new(number: usize) -> Self {
        let application = Application::new(number / REPLICAS);
        // The offset makes the seeds of pods differ from the seeds of applications.
        let mut random = Rng::with_seed(1_000_000_000 + number as u64);
        Self {
            number,
            suffix: letters(&mut random, 5),
            ip: format!("10.{}.{}.{}", 128 + number / 62_500, number / 250 % 250, number % 250 + 1),
            host: random.usize(0..number / PODS_PER_NODE + 10),
            ids: application.containers.iter().map(|_| parts::hex(&mut random, 64)).collect(),
            volume: format!("kube-api-access-{}", letters(&mut random, 5)),
            application,
        }
    }

    pub(crate) fn namespace(&self) -> String {
        namespace(self.number / REPLICAS % NAMESPACES)
    }

    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.application.replica_set(), self.suffix)
    }

    /// Returns the pod as its controller creates it, but already with parts that a cluster adds,
    /// such as the node and the token.
    pub(crate) fn pod(&self) -> Value {
        let application = &self.application;
        let containers = application.containers.iter().map(|spec| container(spec, &self.volume));
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name(),
                "generateName": format!("{}-", application.replica_set()),
                "namespace": self.namespace(),
                "labels": application.labels(),
                "annotations": application.annotations(),
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": application.replica_set(),
                    "uid": application.owner, "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": containers.collect::<Vec<_>>(),
                "volumes": volumes(application, &self.volume),
                "nodeName": format!("node-{:05}.cluster.example", self.host),
                "serviceAccountName": application.name,
                "restartPolicy": "Always",
                "dnsPolicy": "ClusterFirst",
                "schedulerName": "default-scheduler",
                "terminationGracePeriodSeconds": 30,
                "securityContext": { "runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532 },
                "tolerations": parts::tolerations(),
                "topologySpreadConstraints": [{
                    "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": { "matchLabels": { "app.kubernetes.io/name": application.name } },
                }],
            },
        })
    }

    /// Returns the status in an update pass: ready (pass 0), then not ready (1), then ready again
    /// (2).
    pub(crate) fn status(&self, pass: usize) -> Value {
        let is_ready = pass != 1;
        let time = |minute: usize| {
            format!("2026-11-{:02}T10:{minute:02}:{:02}Z", self.number % 28 + 1, self.number % 60)
        };
        let host = format!("10.0.{}.{}", self.host / 250, self.host % 250 + 1);
        let condition = |kind: &str, is_true: bool, minute: usize| {
            json!({
                "type": kind, "status": if is_true { "True" } else { "False" },
                "lastProbeTime": null, "lastTransitionTime": time(minute), "observedGeneration": 1,
            })
        };
        let statuses = self.application.containers.iter().zip(&self.ids).enumerate();
        json!({
            "phase": "Running",
            "startTime": time(1),
            "hostIP": host,
            "hostIPs": [{ "ip": host }],
            "podIP": self.ip,
            "podIPs": [{ "ip": self.ip }],
            "conditions": [
                condition("PodReadyToStartContainers", true, 2),
                condition("Initialized", true, 1),
                condition("Ready", is_ready, 3 + pass),
                condition("ContainersReady", is_ready, 3 + pass),
                condition("PodScheduled", true, 1),
            ],
            "containerStatuses": statuses
                .map(|(index, (spec, id))| container_status(spec, id, is_ready || index + 1 < self.ids.len(), &time(2)))
                .collect::<Vec<_>>(),
        })
    }
}
