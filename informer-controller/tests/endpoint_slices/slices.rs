//! Computes the slices of a service from the service and its pods, without requests or caches.
//!
//! Kubernetes: `staging/src/k8s.io/endpointslice/reconciler.go`, which minimizes the number of
//! writes. This version sorts the pods and puts a hundred into each slice. It omits pods that are
//! not ready. It also omits named ports, because the view of pods has no containers.

use std::collections::BTreeMap;

use informer_factory::ObjectKey;
use k8s_openapi::api::core::v1::{ObjectReference, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::Resource;

use crate::views::PodEndpoint;

/// The label that names the controller of a slice. The cluster's own controller ignores slices of
/// other controllers.
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(crate) const MANAGER: &str = "endpoint-slices-example";

/// The label that names the service of a slice.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Maximum number of endpoints in a slice, as in Kubernetes.
const MAX_ENDPOINTS: usize = 100;

/// Returns the service's selector, which is empty if something else manages the endpoints.
pub(crate) fn selector(service: &Service) -> BTreeMap<String, String> {
    service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default()
}

pub(crate) fn service_key(slice: &EndpointSlice) -> Option<ObjectKey> {
    let service = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    Some(ObjectKey::new(slice.metadata.namespace.as_deref(), service))
}

/// Returns the slices that a service should have, with all ready `pods`.
pub(crate) fn desired<'a>(
    service: &Service,
    pods: impl IntoIterator<Item = &'a PodEndpoint>,
) -> Vec<EndpointSlice> {
    let mut endpoints: Vec<_> = pods.into_iter().filter_map(endpoint).collect();
    let name = |endpoint: &Endpoint| endpoint.target_ref.as_ref().and_then(|pod| pod.name.clone());
    endpoints.sort_by_cached_key(name);
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let ports: Vec<_> = ports.filter_map(port).collect();
    let slice = |(n, endpoints): (usize, &[Endpoint])| slice(service, n, endpoints.to_vec(), ports.clone());
    endpoints.chunks(MAX_ENDPOINTS).enumerate().map(slice).collect()
}

pub(crate) fn is_same(slice: &EndpointSlice, desired: &EndpointSlice) -> bool {
    let what = |slice: &EndpointSlice| (service_key(slice), slice.endpoints.clone(), slice.ports.clone());
    what(slice) == what(desired)
}

fn slice(service: &Service, n: usize, endpoints: Vec<Endpoint>, ports: Vec<EndpointPort>) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let labels = [(MANAGED_BY, MANAGER), (SERVICE_NAME, name.as_str())];
    EndpointSlice {
        address_type: "IPv4".to_owned(),
        endpoints: Some(endpoints),
        metadata: ObjectMeta {
            name: Some(format!("{name}-example-{n}")),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()),
            // The garbage collector deletes the slices of a deleted service.
            owner_references: service.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ports: Some(ports),
    }
}

fn endpoint(pod: &PodEndpoint) -> Option<Endpoint> {
    let conditions = EndpointConditions { ready: Some(true), ..EndpointConditions::default() };
    let target = ObjectReference {
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        namespace: pod.metadata.namespace.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    };
    Some(Endpoint {
        addresses: vec![pod.ready_address()?.to_owned()],
        conditions: Some(conditions),
        target_ref: Some(target),
        ..Endpoint::default()
    })
}

fn port(port: &ServicePort) -> Option<EndpointPort> {
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(_)) => return None,
    };
    Some(EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(number),
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
        ..EndpointPort::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn pod(n: usize, ready: &str) -> PodEndpoint {
        let metadata = json!({ "name": format!("pod-{n:03}"), "namespace": "shop", "uid": format!("u{n}") });
        let conditions = json!([{ "type": "Ready", "status": ready }]);
        let status = json!({ "podIP": format!("10.0.0.{n}"), "conditions": conditions });
        from_value(json!({ "metadata": metadata, "status": status })).expect("a pod")
    }

    fn service() -> Service {
        let ports =
            json!([{ "port": 80, "targetPort": 8080 }, { "port": 81, "targetPort": "http", "name": "b" }]);
        let metadata = json!({ "name": "web", "namespace": "shop", "uid": "u" });
        from_value(json!({ "metadata": metadata, "spec": { "ports": ports } })).expect("a service")
    }

    #[test]
    fn slice_has_sorted_ready_pods_and_numbered_ports() {
        let slices = desired(&service(), &[pod(2, "True"), pod(3, "False"), pod(1, "True")]);
        let [slice] = &slices[..] else { panic!("{slices:?}") };
        let addresses = slice.endpoints.iter().flatten().map(|endpoint| endpoint.addresses[0].as_str());
        assert_eq!(addresses.collect::<Vec<_>>(), ["10.0.0.1", "10.0.0.2"]);
        let ports = slice.ports.iter().flatten().map(|port| port.port);
        assert_eq!(ports.collect::<Vec<_>>(), [Some(8080)]);
        assert_eq!(service_key(slice), Some(ObjectKey::namespaced("shop", "web")));
    }

    #[test]
    fn number_of_pods_determines_number_of_slices() {
        let pods: Vec<_> = (0..250).map(|n| pod(n, "True")).collect();
        let sizes =
            desired(&service(), &pods).into_iter().map(|slice| slice.endpoints.map_or(0, |e| e.len()));
        assert_eq!(sizes.collect::<Vec<_>>(), [100, 100, 50]);
        assert!(desired(&service(), &[]).is_empty());
    }
}
