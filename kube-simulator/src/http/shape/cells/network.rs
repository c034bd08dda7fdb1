//! The table cells of services, endpoints, ingresses and network policies.

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
            "LoadBalancer" => text_or(&addresses(&service["status"]).into(), "<pending>"),
            _ => or_none(&spec["externalIPs"][0]),
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

fn addresses(status: &Value) -> String {
    let ingress = elements(&status["loadBalancer"]["ingress"]).iter();
    let addresses = ingress.map(|given| text(given.get("ip").unwrap_or(&given["hostname"])));
    addresses.collect::<Vec<_>>().join(",")
}

pub(super) fn of_endpoints(column: &str, object: &Value) -> Option<Value> {
    Some(match column {
        "Endpoints" if object["subsets"].is_array() => {
            let subsets = elements(&object["subsets"]).iter().flat_map(|subset| {
                let ports: Vec<_> = elements(&subset["ports"]).iter().map(|port| &port["port"]).collect();
                let addresses = elements(&subset["addresses"]).iter().map(|address| text(&address["ip"]));
                addresses.flat_map(move |ip| with_ports(ip, &ports)).collect::<Vec<_>>()
            });
            at_most(3, subsets.collect()).into()
        }
        "Endpoints" => {
            let endpoints = elements(&object["endpoints"]).iter();
            let addresses = endpoints.flat_map(|endpoint| elements(&endpoint["addresses"]));
            at_most(3, addresses.map(|address| text(address).to_owned()).collect()).into()
        }
        "AddressType" => text(&object["addressType"]).into(),
        "Ports" => {
            let ports = elements(&object["ports"]).iter().map(|port| match port["port"].as_i64() {
                Some(port) => port.to_string(),
                None => port["name"].as_str().unwrap_or("*").to_owned(),
            });
            at_most(3, ports.collect()).into()
        }
        _ => return None,
    })
}

fn with_ports(ip: &str, ports: &[&Value]) -> Vec<String> {
    if ports.is_empty() {
        return vec![ip.to_owned()];
    }
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    ports.iter().map(|port| format!("{host}:{}", number(port))).collect()
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
            if hosts.is_empty() { "*".into() } else { at_most(3, hosts).into() }
        }
        (_, "Address") => addresses(&object["status"]).into(),
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
