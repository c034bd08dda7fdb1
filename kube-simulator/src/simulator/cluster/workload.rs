//! Workloads: the deployments and stateful sets that own the pods.

use serde_json::{Value, json};

use super::names::{self, Names};
use super::pod::{self, Pod};
use super::{Draw, PodRef, managed_fields};
use crate::simulator::ObjectStore;

/// Every fifth workload is a stateful set.
const STATEFUL_INTERVAL: usize = 5;

/// A deployment with its replica set, or a stateful set.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The name of the pods' owner: the replica set, or the stateful set itself. The pods' names
    /// begin with it and a hyphen.
    owner_name: String,
    uid: String,
    /// The hash in the name of a deployment's replica set; `None` for a stateful set.
    template_hash: Option<String>,
    /// The UID of the pods' owner.
    owner_uid: String,
    created: String,
    /// The pod template of this workload, in JSON. Each pod of the workload starts as a copy of the
    /// template.
    template: Value,
    /// The number of pods that [`new_pod`](Self::new_pod) has created. Also the ordinal of a
    /// stateful set's next new pod.
    pods: usize,
}

impl Workload {
    pub(super) fn draw(namespace: &str, index: usize, used_names: &mut Names, draw: &mut Draw) -> Self {
        draw.advance(3);
        let name = used_names.workload(namespace, &mut draw.random);
        let stateful = index % STATEFUL_INTERVAL == STATEFUL_INTERVAL - 1;
        let template_hash = (!stateful).then(|| names::suffix(&mut draw.random, 10));
        let owner_name = match &template_hash {
            Some(hash) => format!("{name}-{hash}"),
            None => name.clone(),
        };
        let uid = draw.uid();
        let owner_uid = if stateful { uid.clone() } else { draw.uid() };
        let mut workload = Self {
            namespace: namespace.to_owned(),
            name,
            owner_name,
            uid,
            template_hash,
            owner_uid,
            created: draw.now(),
            template: Value::Null,
            pods: 0,
        };
        workload.template = workload.pod_template(draw);
        workload
    }

    /// Builds a further pod of this workload; [`Pod::create`] stores the pod in `store`. `index` is
    /// the index of this workload in the cluster.
    pub(super) fn new_pod(&mut self, index: usize, store: &ObjectStore, draw: &mut Draw) -> Pod {
        let ordinal = self.pods;
        self.pods += 1;
        match self.template_hash {
            Some(_) => self.pod_with_drawn_name(index, store, draw),
            None => Pod::new(self.template.clone(), &format!("{}-{ordinal}", self.owner_name), index, draw),
        }
    }

    /// Builds a pod that replaces the deleted pod `gone`. In a stateful set, the new pod has the
    /// same name.
    pub(super) fn replacement(&self, gone: &PodRef, store: &ObjectStore, draw: &mut Draw) -> Pod {
        match self.template_hash {
            Some(_) => self.pod_with_drawn_name(gone.workload, store, draw),
            None => Pod::new(self.template.clone(), gone.name(), gone.workload, draw),
        }
    }

    fn pod_with_drawn_name(&self, index: usize, store: &ObjectStore, draw: &mut Draw) -> Pod {
        let name = loop {
            let name = format!("{}-{}", self.owner_name, names::suffix(&mut draw.random, 5));
            // Large clusters and long churns draw some names twice.
            if store.get(&format!("{}/{name}", self.namespace)).is_err() {
                break name;
            }
        };
        Pod::new(self.template.clone(), &name, index, draw)
    }

    pub(super) fn objects(&self) -> Vec<Value> {
        if self.template_hash.is_none() {
            return vec![self.controller("StatefulSet", &self.name, &self.uid)];
        }
        let mut replica_set = self.controller("ReplicaSet", &self.owner_name, &self.owner_uid);
        replica_set["metadata"]["ownerReferences"] =
            json!([owner_reference("Deployment", &self.name, &self.uid)]);
        vec![self.controller("Deployment", &self.name, &self.uid), replica_set]
    }

    fn controller(&self, kind: &str, name: &str, uid: &str) -> Value {
        let labels = self.template["metadata"]["labels"].clone();
        json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "namespace": self.namespace,
                "name": name,
                "uid": uid,
                "creationTimestamp": self.created,
                "generation": 1,
                "labels": labels,
            },
            "spec": {
                "replicas": self.pods,
                "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": self.template["spec"] },
            },
            "status": {
                "observedGeneration": 1,
                "replicas": self.pods,
                "readyReplicas": self.pods,
                "availableReplicas": self.pods,
            },
        })
    }

    fn pod_template(&self, draw: &mut Draw) -> Value {
        let version = format!("{}.{}.{}", draw.random.u8(1..5), draw.random.u8(0..40), draw.random.u8(0..10));
        let owner_kind = if self.template_hash.is_some() { "ReplicaSet" } else { "StatefulSet" };
        let mut labels = json!({
            "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/part-of": self.namespace,
            "app.kubernetes.io/version": version,
        });
        if let Some(hash) = &self.template_hash {
            labels["pod-template-hash"] = hash.as_str().into();
        }
        let mut template = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "namespace": self.namespace,
                "generateName": format!("{}-", self.owner_name),
                "labels": labels,
                "annotations": {
                    "checksum/config": format!("{:032x}{:032x}", draw.random.u128(..), draw.random.u128(..)),
                    "prometheus.io/port": "9090",
                    "prometheus.io/scrape": "true",
                },
                "ownerReferences": [owner_reference(owner_kind, &self.owner_name, &self.owner_uid)],
            },
            "spec": pod::spec(&self.namespace, &self.name, &version, draw),
        });
        let mut by_controller = managed_fields::of(&template);
        // The manager that creates an object does not own `apiVersion`, `kind` and
        // `metadata.namespace`.
        if let Value::Object(fields) = &mut by_controller {
            fields.retain(|field, _| matches!(field.as_str(), "f:metadata" | "f:spec"));
        }
        if let Some(fields) = by_controller["f:metadata"].as_object_mut() {
            fields.remove("f:namespace");
        }
        template["metadata"]["managedFields"] = json!([
            managed_fields::entry("kube-controller-manager", None, &draw.now(), &by_controller),
            managed_fields::entry("kubelet", Some("status"), &draw.now(), &pod::status_fields()),
        ]);
        template
    }
}

fn owner_reference(kind: &str, name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}
