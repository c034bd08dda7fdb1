//! The table cells of services, endpoints, ingresses and network policies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::text::{at_most, elements, label_selector, map_text, number, or_none, text, text_or};
use super::name_with_default;

pub(super) fn of_service(column: &str, service: &Value) -> Option<Value> {
    let spec = &service["spec"];
    Some(match column {
        "Type" => text(&spec["type"]).into(),
        "Cluster-IP" => or_none(&spec["clusterIP"]),
        "External-IP" => match text(&spec["type"]) {
            "ExternalName" => or_none(&spec["externalName"]),
            "LoadBalancer" => {
                let addresses = addresses(&service["status"]).into_iter().chain(external_ips(spec));
                text_or(&join(addresses).into(), "<pending>")
            }
            _ => or_none(&join(external_ips(spec)).into()),
        },
        "Port(s)" => {
            let ports = elements(&spec["ports"]).iter().map(|port| {
                let protocol = port["protocol"].as_str().unwrap_or("TCP");
                match number(&port["nodePort"]) {
                    0 => format!("{}/{protocol}", number(&port["port"])),
                    node_port => format!("{}:{node_port}/{protocol}", number(&port["port"])),
                }
            });
            or_none(&ports.collect::<Vec<_>>().join(",").into())
        }
        "Selector" => map_text(&spec["selector"]).into(),
        _ => return None,
    })
}

fn external_ips(spec: &Value) -> impl Iterator<Item = &str> {
    elements(&spec["externalIPs"]).iter().map(text)
}

/// Returns the addresses of a load balancer, sorted and without duplicates.
fn addresses(status: &Value) -> BTreeSet<&str> {
    let ingress = elements(&status["loadBalancer"]["ingress"]).iter();
    let addresses = ingress.map(|given| match text(&given["ip"]) {
        "" => text(&given["hostname"]),
        ip => ip,
    });
    addresses.filter(|address| !address.is_empty()).collect()
}

fn join<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().collect::<Vec<_>>().join(",")
}

pub(super) fn of_endpoints(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let list = |texts: Vec<String>| text_or(&at_most(3, ",", texts).into(), "<unset>");
    Some(match (kind, column) {
        ("Endpoints", "Endpoints") => match elements(&object["subsets"]) {
            [] => "<none>".into(),
            subsets => at_most(3, ",", subsets.iter().flat_map(addresses_with_ports).collect()).into(),
        },
        (_, "Endpoints") => {
            let endpoints = elements(&object["endpoints"]).iter();
            let addresses = endpoints.flat_map(|endpoint| elements(&endpoint["addresses"]));
            list(addresses.map(|address| text(address).to_owned()).collect())
        }
        (_, "AddressType") => text(&object["addressType"]).into(),
        (_, "Ports") => {
            let ports = elements(&object["ports"]).iter().map(|port| match port["port"].as_i64() {
                Some(port) => port.to_string(),
                None => text(&port["name"]).to_owned(),
            });
            list(ports.collect())
        }
        _ => return None,
    })
}

/// Returns all addresses of a subset with its first port, then all with its second port, and so on.
/// For a subset without ports, returns the addresses alone.
fn addresses_with_ports(subset: &Value) -> Vec<String> {
    let (addresses, ports) = (elements(&subset["addresses"]), elements(&subset["ports"]));
    if ports.is_empty() {
        return addresses.iter().map(|address| text(&address["ip"]).to_owned()).collect();
    }
    let with_port = |address: &Value, port: i64| match text(&address["ip"]) {
        ip if ip.contains(':') => format!("[{ip}]:{port}"),
        ip => format!("{ip}:{port}"),
    };
    let ports = ports.iter().map(|port| number(&port["port"]));
    ports.flat_map(|port| addresses.iter().map(move |address| with_port(address, port))).collect()
}

pub(super) fn of_network(kind: &str, column: &str, object: &Value) -> Option<Value> {
    let spec = &object["spec"];
    Some(match (kind, column) {
        ("IngressClass", "Name") => {
            name_with_default(object, "ingressclass.kubernetes.io/is-default-class").into()
        }
        (_, "Class") => or_none(&spec["ingressClassName"]),
        (_, "Hosts") => {
            let hosts = elements(&spec["rules"]).iter().map(|rule| text(&rule["host"]).to_owned());
            let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).collect();
            if hosts.is_empty() { "*".into() } else { at_most(3, ",", hosts).into() }
        }
        (_, "Address") => join(addresses(&object["status"])).into(),
        (_, "Ports") => if elements(&spec["tls"]).is_empty() { "80" } else { "80, 443" }.into(),
        (_, "Controller") => text(&spec["controller"]).into(),
        (_, "Parameters") => match &spec["parameters"] {
            Value::Object(found) => {
                let part = |name: &str| found.get(name).map_or("", text);
                let group = found.get("apiGroup").map(|group| format!(".{}", text(group)));
                format!("{}{}/{}", part("kind"), group.unwrap_or_default(), part("name")).into()
            }
            _ => "<none>".into(),
        },
        (_, "Pod-Selector") => label_selector(&spec["podSelector"]).into(),
        _ => return None,
    })
}
