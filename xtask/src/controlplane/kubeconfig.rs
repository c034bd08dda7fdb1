//! The kubeconfig of a control plane.

use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};

use super::credentials::Credentials;

const CLUSTER: &str = "kube-informer";

/// Writes the kubeconfig as JSON, which is valid YAML.
pub(crate) fn write(path: &Path, port: u16, credentials: &Credentials) -> anyhow::Result<()> {
    let content = format!("{:#}\n", kubeconfig(port, credentials));
    std::fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

fn kubeconfig(port: u16, credentials: &Credentials) -> Value {
    let users = [("admin", &credentials.admin_token), ("nobody", &credentials.nobody_token)];
    let contexts = users.map(|(name, _)| {
        json!({"name": name, "context": {"cluster": CLUSTER, "user": name, "namespace": "default"}})
    });
    let users = users.map(|(name, token)| json!({"name": name, "user": {"token": token}}));
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": CLUSTER,
            "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": credentials.ca_file,
            },
        }],
        "users": users,
        "contexts": contexts,
        "current-context": "admin",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_users_have_a_context() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let credentials = Credentials::generate(dir.path()).expect("credentials");
        let config = kubeconfig(1234, &credentials);
        assert_eq!(config["current-context"], "admin");
        assert_eq!(config["contexts"][1]["name"], "nobody");
        assert_eq!(config["users"][1]["user"]["token"], credentials.nobody_token);
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:1234");
    }
}
