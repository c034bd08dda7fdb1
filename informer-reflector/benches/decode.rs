//! The cost of decoding, compared with `serde_json` alone and with kube.
//!
//! Most lists and watches have 1,000 pods of 8.4 KB, half of it managedFields. So a time in
//! milliseconds is also the time per pod in microseconds. Note: results vary between runs by more
//! than most optimizations gain. So compare the ratios within one run.

use std::hint::black_box;
use std::io::Write;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{FutureExt, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use informer_core::{AnyObject, Cached, ListOptions, ListPart, ListerWatcher, Storage};
use informer_reflector::{Encoding, KubeListWatch, ListDecoder, PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::{ObjectList, WatchEvent};
use kube_simulator::Simulator;
use serde_json::{Map, Value, json};
use tower::BoxError;

const PODS: usize = 1000;

/// The number of pods in the list that [`compressed`] measures.
const MANY: usize = 20_000;

/// The size of the chunks of a body, in bytes.
const CHUNK: usize = 16 * 1024;

fn pod(index: usize) -> Value {
    let name = format!("checkout-api-7d9c6b5f4d-{index:05}");
    let mut pod = json!({
        "metadata": {
            "name": name, "generateName": "checkout-api-7d9c6b5f4d-", "namespace": "shop",
            "uid": format!("5f0c2a1e-3b7d-4c8e-9a6f-{index:012}"),
            "resourceVersion": (1_000_000 + index).to_string(),
            "creationTimestamp": "2026-11-02T09:41:17Z",
            "labels": {
                "app.kubernetes.io/name": "checkout-api", "app.kubernetes.io/instance": "checkout",
                "app.kubernetes.io/version": "4.17.2", "pod-template-hash": "7d9c6b5f4d", "tier": "backend",
            },
            "annotations": {
                "kubectl.kubernetes.io/restartedAt": "2026-11-02T09:41:16Z",
                "prometheus.io/port": "9090", "prometheus.io/scrape": "true",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "checkout-api-7d9c6b5f4d",
                "uid": "0b2f8a44-6d7c-4f59-8a35-2f5f0a0f8d11", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": spec(index),
        "status": status(index),
    });
    let managed = managed_fields(&pod);
    pod["metadata"]["managedFields"] = managed;
    pod
}

fn spec(index: usize) -> Value {
    json!({
        "volumes": [
            {"name": "config", "configMap": {"name": "checkout-config", "defaultMode": 420}},
            {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef":
                    {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
            ]}},
        ],
        "containers": [container("api", 8080)],
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "checkout", "serviceAccount": "checkout",
        "nodeName": format!("node-{:04}", index % 250), "securityContext": {"fsGroup": 2000},
        "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300},
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300},
        ],
    })
}

fn container(name: &str, port: u16) -> Value {
    let probe = |path: &str| {
        json!({"httpGet": {"path": path, "port": port, "scheme": "HTTP"}, "timeoutSeconds": 1,
               "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3})
    };
    json!({
        "name": name, "image": format!("registry.example.com/shop/{name}:4.17.2"),
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "DATABASE_HOST", "value": "postgres.shop.svc.cluster.local"},
            {"name": "DATABASE_PORT", "value": "5432"}, {"name": "LOG_LEVEL", "value": "info"},
            {"name": "CACHE_URL", "value": "redis://redis.shop.svc.cluster.local:6379/0"},
            {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel-collector.observability:4317"},
            {"name": "PAYMENT_TIMEOUT", "value": "2500ms"}, {"name": "FEATURE_FAST_CHECKOUT", "value": "true"},
            {"name": "DATABASE_PASSWORD", "valueFrom":
                {"secretKeyRef": {"name": "checkout-database", "key": "password"}}},
        ],
        "resources": {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}},
        "volumeMounts": [
            {"name": "config", "readOnly": true, "mountPath": "/etc/checkout"},
            {"name": "kube-api-access-x7k2p", "readOnly": true,
             "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        "livenessProbe": probe("/healthz"), "readinessProbe": probe("/readyz"),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent", "securityContext": {"allowPrivilegeEscalation": false},
    })
}

fn status(index: usize) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": null,
               "lastTransitionTime": "2026-11-02T09:41:29Z"})
    };
    let container = |name: &str| {
        json!({"name": name, "state": {"running": {"startedAt": "2026-11-02T09:41:28Z"}}, "lastState": {},
               "ready": true, "restartCount": 0, "image": format!("registry.example.com/shop/{name}:4.17.2"),
               "imageID": format!("registry.example.com/shop/{name}@sha256:{index:064}"),
               "containerID": format!("containerd://{index:064}"), "started": true})
    };
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(condition);
    let ip = format!("10.{}.{}.{}", index % 200, index / 7 % 250, index % 250);
    json!({
        "phase": "Running", "hostIP": "172.18.0.4", "podIP": ip, "podIPs": [{"ip": ip}],
        "startTime": "2026-11-02T09:41:17Z", "qosClass": "Burstable",
        "conditions": conditions,
        "containerStatuses": [container("api")],
    })
}

/// Returns managed fields like those of a server: one entry for the controller, and one for the
/// kubelet.
fn managed_fields(pod: &Value) -> Value {
    let entry = |manager: &str, part: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-11-02T09:41:29Z",
               "fieldsType": "FieldsV1", "fieldsV1": fields(&part)})
    };
    let status = json!({"status": pod["status"]});
    let mut kubelet = entry("kubelet", status);
    kubelet["subresource"] = json!("status");
    let labels = json!({"labels": pod["metadata"]["labels"], "annotations": pod["metadata"]["annotations"]});
    json!([entry("kube-controller-manager", json!({"metadata": labels, "spec": pod["spec"]})), kubelet])
}

fn fields(value: &Value) -> Value {
    let mut fields = Map::new();
    match value {
        Value::Object(object) => {
            fields.extend(object.iter().map(|(name, inner)| (format!("f:{name}"), self::fields(inner))));
        }
        Value::Array(items) => {
            for item in items {
                let key = ["name", "type", "mountPath", "ip", "key"]
                    .into_iter()
                    .find(|key| item.get(key).is_some());
                let Some(key) = key else { continue };
                let mut owned = self::fields(item);
                owned["."] = json!({});
                fields.insert(format!("k:{}", json!({key: item[key]})), owned);
            }
        }
        _ => {}
    }
    Value::Object(fields)
}

fn list_body(pods: &[String]) -> Bytes {
    let items = pods.join(",");
    let head = r#""kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2000000"}"#;
    Bytes::from(format!("{{{head},\"items\":[{items}]}}"))
}

/// Returns a simulated API server that has these pods. Requires a tokio runtime.
fn simulator_with(pods: &[String]) -> Simulator {
    let simulator = Simulator::builder().built_in_kinds().start_in_process();
    for pod in pods {
        let mut pod: Value = serde_json::from_str(pod).expect("JSON");
        pod["apiVersion"] = "v1".into();
        pod["kind"] = "Pod".into();
        simulator.create(&pod).expect("a new pod");
    }
    simulator
}

/// Returns the protobuf body of a list of these pods, as a simulated API server writes it.
fn protobuf_body(pods: &[String]) -> Bytes {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let simulator = simulator_with(pods);
        let request =
            http::Request::get("/api/v1/pods").header("accept", "application/vnd.kubernetes.protobuf");
        let request = request.body(kube::client::Body::empty()).expect("a request");
        let response = simulator.client().expect("a client").send(request).await.expect("a response");
        BodyExt::collect(response.into_body()).await.expect("a body").to_bytes()
    })
}

/// Returns the body of a watch that modifies all pods.
fn watch_body(pods: &[String]) -> Bytes {
    let lines = pods.iter().map(|pod| {
        // In watches, the server sends the type of each object.
        let typed = pod.replacen('{', r#"{"kind":"Pod","apiVersion":"v1","#, 1);
        format!("{{\"type\":\"MODIFIED\",\"object\":{typed}}}\n")
    });
    Bytes::from(lines.collect::<String>())
}

fn one_pod(criterion: &mut Criterion, pods: &[String]) {
    let mut group = criterion.benchmark_group("one pod");
    let json = pods[0].as_bytes();
    group.bench_function("serde_json", |bencher| {
        bencher.iter(|| serde_json::from_slice::<Pod>(black_box(json)).expect("a pod"));
    });
    group.bench_function("serde_json, then managedFields dropped", |bencher| {
        bencher.iter(|| {
            let mut pod = serde_json::from_slice::<Pod>(black_box(json)).expect("a pod");
            pod.metadata.managed_fields = None;
            pod
        });
    });
    group.bench_function("whole object skipped", |bencher| {
        bencher.iter(|| serde_json::from_slice::<serde::de::IgnoredAny>(black_box(json)).expect("a pod"));
    });
    group.finish();
}

/// Collects a body and copies it into a string, as kube does.
fn collected(body: &Bytes) -> String {
    let chunks: Vec<_> =
        chunks(body).map(|chunk| Ok::<_, std::io::Error>(http_body::Frame::data(chunk))).collect();
    let body = StreamBody::new(futures::stream::iter(chunks));
    let bytes =
        BodyExt::collect(body).now_or_never().expect("all chunks are there").expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn chunks(body: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..body.len()).step_by(CHUNK).map(|start| body.slice(start..body.len().min(start + CHUNK)))
}

fn list(criterion: &mut Criterion, pods: &[String]) {
    let mut group = criterion.benchmark_group("list of 1,000 pods");
    group.throughput(Throughput::Elements(PODS as u64)).sample_size(20);
    let body = list_body(pods);
    group.bench_function("serde_json, from a complete body", |bencher| {
        bencher.iter(|| serde_json::from_slice::<ObjectList<Pod>>(&body).expect("a list"));
    });
    group.bench_function("as kube does", |bencher| {
        bencher.iter(|| serde_json::from_str::<ObjectList<Pod>>(&collected(&body)).expect("a list"));
    });
    let protobuf = protobuf_body(pods);
    for (name, encoding, body, paths) in [
        ("ListDecoder, JSON", Encoding::Json, &body, PrunePaths::default()),
        ("ListDecoder, JSON, nothing pruned", Encoding::Json, &body, PrunePaths::none()),
        ("ListDecoder, protobuf", Encoding::Protobuf, &protobuf, PrunePaths::default()),
        ("ListDecoder, protobuf, nothing pruned", Encoding::Protobuf, &protobuf, PrunePaths::none()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut decoder = ListDecoder::<Pod>::new(paths.clone()).encoding(encoding);
                let mut count = 0;
                for chunk in chunks(body) {
                    count += decoder.push(&chunk).expect("items").len();
                }
                count += decoder.finish().expect("an end").0.len();
                assert_eq!(count, PODS);
            });
        });
    }
    for (name, encoding, body, paths) in [
        ("Ignored, JSON", Encoding::Json, &body, PrunePaths::default()),
        ("Ignored, JSON, nothing pruned", Encoding::Json, &body, PrunePaths::none()),
        ("Ignored, protobuf", Encoding::Protobuf, &protobuf, PrunePaths::default()),
        ("Ignored, protobuf, nothing pruned", Encoding::Protobuf, &protobuf, PrunePaths::none()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let mut decoder = ListDecoder::<serde::de::IgnoredAny>::new(paths.clone()).encoding(encoding);
                let mut count = 0;
                for chunk in chunks(body) {
                    count += decoder.push(&chunk).expect("items").len();
                }
                count += decoder.finish().expect("an end").0.len();
                assert_eq!(count, PODS);
            });
        });
    }
    group.finish();
}

fn watch(criterion: &mut Criterion, pods: &[String]) {
    let mut group = criterion.benchmark_group("watch of 1,000 pods");
    group.throughput(Throughput::Elements(PODS as u64)).sample_size(20);
    let body = watch_body(pods);
    let lines: Vec<_> =
        body.split_inclusive(|byte| *byte == b'\n').map(|line| body.slice_ref(line)).collect();
    group.bench_function("as kube does, without its framing", |bencher| {
        bencher.iter(|| {
            for line in &lines {
                let line = String::from_utf8(line.to_vec()).expect("UTF-8");
                black_box(serde_json::from_str::<WatchEvent<Pod>>(&line).expect("an event"));
            }
        });
    });
    for (arriving, pieces) in
        [("event by event", lines.clone()), ("in chunks of 16 KiB", chunks(&body).collect())]
    {
        for (pruned, paths) in [("", PrunePaths::default()), (", nothing pruned", PrunePaths::none())] {
            group.bench_function(format!("WatchDecoder, {arriving}{pruned}"), |bencher| {
                bencher.iter(|| {
                    let mut decoder = WatchDecoder::<Pod>::new(paths.clone());
                    let batches = pieces.iter().map(|piece| decoder.push(piece).expect("events").len());
                    assert_eq!(batches.sum::<usize>(), PODS);
                });
            });
        }
    }
    group.finish();
}

/// Compresses bytes with gzip at the fastest level, as the API server does.
fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("a write to memory");
    Bytes::from(encoder.finish().expect("a write to memory"))
}

/// Returns a client whose server answers each request with this body.
fn client(body: &Bytes, encoding: &'static str) -> Client {
    let pieces: Vec<_> = chunks(body).collect();
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let frames = pieces.clone().into_iter().map(|piece| Ok::<_, BoxError>(http_body::Frame::data(piece)));
        let body = StreamBody::new(futures::stream::iter(frames));
        let response = http::Response::builder().header("content-encoding", encoding).body(body);
        std::future::ready(Ok::<_, BoxError>(response.expect("a response")))
    });
    Client::new(service, "default")
}

/// Measures a list of 20,000 pods with `KubeListWatch`, plain and compressed.
fn compressed(criterion: &mut Criterion, pods: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let _entered = runtime.enter();
    let body = list_body(&pods.iter().cycle().take(MANY).cloned().collect::<Vec<_>>());
    let small = gzip(&body);
    eprintln!("the list has {} bytes, {} compressed", body.len(), small.len());
    let mut group = criterion.benchmark_group("list of 20,000 pods, KubeListWatch");
    group.throughput(Throughput::Elements(MANY as u64)).sample_size(10);
    for (encoding, body) in [("identity", &body), ("gzip", &small)] {
        let pods = KubeListWatch::<Pod>::all(client(body, encoding));
        group.bench_function(encoding, |bencher| {
            bencher.iter(|| {
                let count = runtime.block_on(async {
                    let mut parts = pods.list(ListOptions::default()).await.expect("a list");
                    let mut count = 0;
                    while let Some(part) = parts.next().await {
                        if let ListPart::Items(items) = part.expect("a part") {
                            count += items.len();
                        }
                    }
                    count
                });
                assert_eq!(count, MANY);
            });
        });
    }
    group.finish();
}

/// Lists the pods of a simulator, and returns them as a store keeps them.
async fn stored(simulator: &Simulator, storage: Storage) -> Vec<Cached<Pod>> {
    let pods = KubeListWatch::<Pod>::all(simulator.client().expect("a client"));
    let pods = pods.with_storage(storage).expect("encoded objects");
    let mut parts = pods.list(ListOptions::default()).await.expect("a list");
    let mut stored = Vec::new();
    while let Some(part) = parts.next().await {
        if let ListPart::Items(items) = part.expect("a part") {
            stored.extend(items.into_iter().map(|item| {
                let item = item.expect("a pod").cast::<AnyObject>();
                item.into_cached_if_encoded().expect("an encoded object").cast()
            }));
        }
    }
    stored
}

/// Measures reads of encoded pods. `first read` reads 1,000 pods in turn, so that no read finds a
/// recently decoded pod.
fn reads(criterion: &mut Criterion, pods: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _entered = runtime.enter();
    let simulator = simulator_with(pods);
    for (name, storage) in [("encoded", Storage::Encoded), ("compressed", Storage::Compressed)] {
        let pods = runtime.block_on(stored(&simulator, storage));
        let mut group = criterion.benchmark_group(format!("read of a pod, {name}"));
        let mut next = pods.iter().cycle();
        group.bench_function("first read", |bencher| {
            bencher.iter(|| next.next().map(|pod| pod.read(|pod| black_box(&pod.spec).is_some())));
        });
        let pod = pods[0].clone();
        group.bench_function("later read", |bencher| bencher.iter(|| black_box(&pod.spec).is_some()));
        group.bench_function("read after a recent one", |bencher| {
            bencher.iter(|| pods[0].read(|pod| black_box(&pod.spec).is_some()));
        });
        group.finish();
    }
}

fn decode(criterion: &mut Criterion) {
    let pods: Vec<_> = (0..PODS).map(|index| pod(index).to_string()).collect();
    let managed = pod(0)["metadata"]["managedFields"].to_string().len();
    eprintln!("a pod has {} bytes, {managed} of them managedFields", pods[0].len());
    one_pod(criterion, &pods);
    list(criterion, &pods);
    watch(criterion, &pods);
    compressed(criterion, &pods);
    reads(criterion, &pods);
}

criterion_group!(benches, decode);
criterion_main!(benches);
