//! The parts of generated pods: applications, containers, volumes and container statuses.

use fastrand::Rng;
use serde_json::{Value, json};

const SUBJECTS: [&str; 12] = [
    "checkout",
    "payments",
    "catalog",
    "search",
    "billing",
    "identity",
    "shipping",
    "inventory",
    "pricing",
    "media",
    "reporting",
    "notifications",
];
const ROLES: [&str; 6] = ["api", "worker", "gateway", "frontend", "consumer", "scheduler"];

const SIDECARS: [&str; 2] = ["proxy", "log-shipper"];
const VARIABLES: [&str; 10] = [
    "LOG_LEVEL",
    "DATABASE_URL",
    "CACHE_ADDRESS",
    "QUEUE_URL",
    "FEATURE_FLAGS",
    "REGION",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "REQUEST_TIMEOUT",
    "MAX_CONNECTIONS",
    "TENANT_ID",
];

/// Possible numbers of containers of an application, each entry equally probable.
const COUNTS: [usize; 6] = [1, 1, 1, 1, 2, 3];

/// The characters of the random part of names that the API server generates.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The common content of the pods of a `ReplicaSet`.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) name: String,
    /// The hash of the pod template.
    hash: String,
    version: String,
    /// The UID of the `ReplicaSet`.
    pub(crate) owner: String,
    checksum: String,
    pub(crate) containers: Vec<ContainerSpec>,
}

#[derive(Debug)]
pub(crate) struct ContainerSpec {
    name: String,
    image: String,
    digest: String,
    variables: Vec<(&'static str, String)>,
    port: u16,
    millicores: usize,
}

impl Application {
    pub(crate) fn new(number: usize) -> Self {
        let random = &mut Rng::with_seed(number as u64);
        let name = format!("{}-{}-{number:04}", pick(random, &SUBJECTS), pick(random, &ROLES));
        let version = format!("{}.{}.{}", random.u8(0..9), random.u8(0..30), random.u8(0..30));
        let names = std::iter::once(name.as_str()).chain(SIDECARS);
        let containers = names
            .take(COUNTS[random.usize(0..COUNTS.len())])
            .map(|name| ContainerSpec::new(name, &version, random));
        Self {
            containers: containers.collect(),
            hash: letters(random, 10),
            owner: uid(random),
            checksum: hex(random, 64),
            version,
            name,
        }
    }

    pub(crate) fn replica_set(&self) -> String {
        format!("{}-{}", self.name, self.hash)
    }

    pub(crate) fn labels(&self) -> Value {
        json!({
            "app.kubernetes.io/name": self.name,
            "app.kubernetes.io/version": self.version,
            "app.kubernetes.io/managed-by": "Helm",
            "app.kubernetes.io/part-of": self.name.split('-').next(),
            "pod-template-hash": self.hash,
        })
    }

    pub(crate) fn annotations(&self) -> Value {
        json!({
            "checksum/config": self.checksum,
            "kubectl.kubernetes.io/restartedAt": "2026-11-02T09:31:44Z",
            "prometheus.io/scrape": "true",
            "prometheus.io/port": self.containers.first().map(|first| first.port.to_string()),
        })
    }
}

impl ContainerSpec {
    fn new(name: &str, version: &str, random: &mut Rng) -> Self {
        let mut variable = |name: &&'static str| {
            let length = random.usize(12..48);
            (*name, letters(random, length))
        };
        let count = 3 + name.len() % 5;
        let variables = VARIABLES.iter().take(count).map(&mut variable).collect();
        Self {
            name: name.to_owned(),
            image: format!("registry.example.com/{name}/{name}:{version}"),
            digest: hex(random, 64),
            variables,
            port: 8000 + random.u16(0..1000),
            millicores: random.usize(1..20) * 50,
        }
    }
}

/// Returns a container of a pod's `spec`, which mounts the volume `token_volume`.
pub(crate) fn container(spec: &ContainerSpec, token_volume: &str) -> Value {
    let mut variables: Vec<Value> =
        spec.variables.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    for (name, path) in [("POD_NAME", "metadata.name"), ("NODE_NAME", "spec.nodeName")] {
        variables.push(
            json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } }),
        );
    }
    let probe = |path: &str, period: u8| {
        json!({
            "httpGet": { "path": path, "port": "http", "scheme": "HTTP" },
            "periodSeconds": period, "timeoutSeconds": 2, "successThreshold": 1, "failureThreshold": 3,
        })
    };
    json!({
        "name": spec.name,
        "image": spec.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/config/config.yaml", format!("--listen=:{}", spec.port)],
        "ports": [{ "name": "http", "containerPort": spec.port, "protocol": "TCP" }],
        "env": variables,
        "resources": {
            "requests": { "cpu": format!("{}m", spec.millicores), "memory": format!("{}Mi", spec.millicores * 2) },
            "limits": { "memory": format!("{}Mi", spec.millicores * 4) },
        },
        "livenessProbe": probe("/healthz", 10),
        "readinessProbe": probe("/readyz", 5),
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/config", "readOnly": true },
            { "name": token_volume, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true },
        ],
        "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    })
}

/// Returns the volumes of a pod: configuration, and the token that the API server adds to each pod.
pub(crate) fn volumes(application: &Application, token_volume: &str) -> Value {
    json!([
        { "name": "config", "configMap": { "name": format!("{}-config", application.name), "defaultMode": 420 } },
        { "name": token_volume, "projected": { "defaultMode": 420, "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [
                { "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } },
            ] } },
        ] } },
    ])
}

/// Returns the tolerations that the API server adds to each pod.
pub(crate) fn tolerations() -> [Value; 2] {
    ["not-ready", "unreachable"].map(|condition| {
        json!({
            "key": format!("node.kubernetes.io/{condition}"),
            "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        })
    })
}

/// Returns the status of a running container.
pub(crate) fn container_status(spec: &ContainerSpec, id: &str, is_ready: bool, started: &str) -> Value {
    json!({
        "name": spec.name,
        "image": spec.image,
        "imageID": format!("registry.example.com/{}@sha256:{}", spec.name, spec.digest),
        "containerID": format!("containerd://{id}"),
        "ready": is_ready,
        "started": true,
        "restartCount": 0,
        "lastState": {},
        "state": { "running": { "startedAt": started } },
    })
}

fn pick<'a>(random: &mut Rng, names: &[&'a str]) -> &'a str {
    names[random.usize(0..names.len())]
}

pub(crate) fn letters(random: &mut Rng, length: usize) -> String {
    (0..length).map(|_| char::from(LETTERS[random.usize(0..LETTERS.len())])).collect()
}

pub(crate) fn hex(random: &mut Rng, length: usize) -> String {
    (0..length).map(|_| random.digit(16)).collect()
}

fn uid(random: &mut Rng) -> String {
    let [a, b, c, d, e] = [8, 4, 4, 4, 12].map(|length| hex(random, length));
    format!("{a}-{b}-{c}-{d}-{e}")
}
