//! The command line of each server, for a fast start and for listening on loopback only.

use std::path::PathBuf;

use super::credentials::{
    CA_FILE, SERVICE_ACCOUNT_KEY_FILE, SERVICE_ACCOUNT_PUBLIC_FILE, SERVING_CERT_FILE, SERVING_KEY_FILE,
    TOKEN_FILE,
};
use super::{OptionalProgram, Options};
use crate::workspace;

/// The paths and ports in the command lines of the servers.
#[derive(Clone, Debug)]
pub(crate) struct Flags {
    pub(crate) dir: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) etcd_port: u16,
    /// The port where etcd listens for other members, although there are none.
    pub(crate) etcd_peer_port: u16,
    pub(crate) api_port: u16,
}

impl Flags {
    pub(crate) fn etcd(&self, options: &Options) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.etcd_port);
        let peer = format!("http://127.0.0.1:{}", self.etcd_peer_port);
        let mut flags = vec![
            format!("--data-dir={}", self.file("etcd")),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // The data need not survive a power failure.
            "--unsafe-no-fsync".to_owned(),
        ];
        flags.extend(options.etcd_arg.iter().cloned());
        flags
    }

    pub(crate) fn apiserver(&self, options: &Options) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.api_port),
            // Without this flag the server searches for a network interface and fails offline.
            "--advertise-address=127.0.0.1".to_owned(),
            // The server refuses to publish a loopback address, so publishing is disabled.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--tls-cert-file={}", self.file(SERVING_CERT_FILE)),
            format!("--tls-private-key-file={}", self.file(SERVING_KEY_FILE)),
            format!("--cert-dir={}", self.file("certs")),
            format!("--token-auth-file={}", self.file(TOKEN_FILE)),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.file(SERVICE_ACCOUNT_PUBLIC_FILE)),
            format!("--service-account-signing-key-file={}", self.file(SERVICE_ACCOUNT_KEY_FILE)),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if !options.wants(OptionalProgram::ControllerManager) {
            // This plugin rejects pods until a controller has created their service account.
            flags.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        flags.extend(options.apiserver_arg.iter().cloned());
        flags
    }

    pub(crate) fn controller_manager(&self) -> Vec<String> {
        let mut flags = self.controller();
        flags.extend([
            format!("--service-account-private-key-file={}", self.file(SERVICE_ACCOUNT_KEY_FILE)),
            format!("--root-ca-file={}", self.file(CA_FILE)),
            // With the default of 20 requests per second, creating 600 pods takes half a minute.
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ]);
        flags
    }

    pub(crate) fn scheduler(&self) -> Vec<String> {
        let mut flags = self.controller();
        flags.extend(["--kube-api-qps=500".to_owned(), "--kube-api-burst=1000".to_owned()]);
        flags
    }

    pub(crate) fn kwok(&self) -> Vec<String> {
        let stages = workspace::root().join("xtask/controlplane/kwok-stages.yaml");
        vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--config={}", stages.display()),
            "--manage-all-nodes".to_owned(),
            // With this flag, KWOK renews the leases of nodes. Nodes without a lease count as lost.
            "--node-lease-duration-seconds=40".to_owned(),
        ]
    }

    /// Returns the flags that kube-controller-manager and kube-scheduler share. Each has one
    /// replica and no clients, so it needs no leader election and no port.
    fn controller(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--profiling=false".to_owned(),
        ]
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn flags() -> Flags {
        Flags {
            dir: "/data".into(),
            kubeconfig: "/data/kubeconfig".into(),
            etcd_port: 1,
            etcd_peer_port: 2,
            api_port: 3,
        }
    }

    #[test]
    fn service_accounts_are_required_only_with_controllers() {
        let disabled = "--disable-admission-plugins=ServiceAccount".to_owned();
        let mut options = Options::default();
        assert!(flags().apiserver(&options).contains(&disabled));
        options.with.push(OptionalProgram::ControllerManager);
        assert!(!flags().apiserver(&options).contains(&disabled));
    }

    #[test]
    fn additional_arguments_come_last() {
        let options = Options { apiserver_arg: vec!["--v=2".to_owned()], ..Options::default() };
        assert_eq!(flags().apiserver(&options).last().expect("flags"), "--v=2");
    }
}
