//! A real Kubernetes control plane on loopback: etcd, kube-apiserver and, on request, the
//! controllers that turn Deployments into running pods. Its data is in a temporary folder, and its
//! processes end with the [`Cluster`].
//!
//! Tests can request additional servers. These are more kube-apiserver processes on the same etcd.

mod additional_server;
mod client;
mod credentials;
mod flags;
mod go_build;
mod kubeconfig;
mod nodes;
mod programs;
mod server;
mod watchdog;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use tempfile::TempDir;

pub(crate) use self::additional_server::AdditionalServer;
pub(crate) use self::go_build::{ensure, go, has_go};
pub(crate) use self::programs::Programs;

use self::client::Client;
use self::credentials::Credentials;
use self::flags::Flags;
use self::server::Server;
use self::watchdog::Watchdog;
use crate::process::wait_until;
use crate::signals::Signals;

/// Timeout for each server to become ready. All servers together need about three seconds on two
/// cores.
const READY_DEADLINE: Duration = Duration::from_secs(90);

/// Number of attempts to start, because another process can take a port that was free before.
const PORT_ATTEMPTS: usize = 3;

/// Optional programs besides etcd and kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptionalProgram {
    /// The command-line client, for scripts
    Kubectl,
    /// Creates pods for Deployments, collects garbage, and creates the service accounts of namespaces
    ControllerManager,
    /// Assigns pods to nodes
    Scheduler,
    /// Simulates nodes: it reports the pods of a node as running
    Kwok,
}

/// The options of a control plane.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Programs besides etcd and kube-apiserver: kubectl, controller-manager, scheduler, kwok
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(crate) with: Vec<OptionalProgram>,

    /// Number of nodes that KWOK simulates; more than 0 implies `--with kwok`
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) nodes: usize,

    /// An additional argument for kube-apiserver, such as `--apiserver-arg=--min-request-timeout=5`
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) apiserver_arg: Vec<String>,

    /// Additional API servers on the same etcd.
    #[arg(skip)]
    pub(crate) additional_servers: Vec<AdditionalServer>,

    /// An additional argument for etcd
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) etcd_arg: Vec<String>,
}

impl Options {
    pub(crate) fn wants(&self, extra: OptionalProgram) -> bool {
        self.with.contains(&extra) || (extra == OptionalProgram::Kwok && self.nodes > 0)
    }
}

/// A running control plane. Dropping it stops its processes and deletes its folder. After an error
/// that refers to the logs, the folder remains.
#[derive(Debug)]
pub(crate) struct Cluster {
    // Fields are dropped in this order: first the watchdog, so that it does not act, then the
    // additional servers, then the other servers, newest first, and the folder last.
    watchdog: Watchdog,
    additional_servers: Vec<(AdditionalServer, Server)>,
    servers: Vec<Server>,
    kubeconfig: PathBuf,
    etcd_port: u16,
    dir: TempDir,
}

impl Cluster {
    /// Returns once the control plane is ready for requests.
    pub(crate) fn start(options: &Options, programs: &Programs, signals: &Signals) -> anyhow::Result<Self> {
        let mut attempt = 1;
        loop {
            let can_retry = attempt < PORT_ATTEMPTS;
            match Self::start_once(options, programs, signals, can_retry) {
                Err(error) if can_retry && port_was_taken(&error) => {
                    eprintln!("another process took a port of the control plane; trying others");
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Returns the path of the kubeconfig file. Its default context `admin` has all permissions.
    /// Its context `nobody` has only the permissions of every authenticated user.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the kube-apiservers that run besides the main one. The path is the server's
    /// kubeconfig file, and the number is its process ID.
    pub(crate) fn additional_servers(&self) -> impl Iterator<Item = (AdditionalServer, PathBuf, u32)> {
        self.additional_servers
            .iter()
            .map(|(which, server)| (*which, self.kubeconfig_of(*which), server.id()))
    }

    fn kubeconfig_of(&self, server: AdditionalServer) -> PathBuf {
        self.dir.path().join(server.name()).with_extension("kubeconfig")
    }

    /// Returns the URL of etcd.
    pub(crate) fn etcd(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// Fails if a process of the control plane has ended. Ignores servers for which
    /// [`AdditionalServer::can_be_stopped`] returns `true`.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        let must_last = self.additional_servers.iter_mut().filter(|(which, _)| !which.can_be_stopped());
        let mut all = self.servers.iter_mut().chain(must_last.map(|(_, server)| server));
        let checked = all.try_for_each(Server::check);
        if checked.is_err() {
            self.keep_logs();
        }
        checked
    }

    /// Keeps the folder of the control plane on drop, because an error refers to the logs in it.
    fn keep_logs(&mut self) {
        self.dir.disable_cleanup(true);
    }

    /// Makes one attempt to start the control plane. After an error, the folder with the logs is
    /// kept. Exceptions: the folder is deleted if the watchdog cannot start, if the user has
    /// interrupted the start, or if another process took a port and `can_retry` is true.
    fn start_once(
        options: &Options,
        programs: &Programs,
        signals: &Signals,
        can_retry: bool,
    ) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("kube-informer-")
            .tempdir()
            .context("cannot create a temporary folder; is TMPDIR writable?")?;
        let kubeconfig = dir.path().join("kubeconfig");
        let mut cluster = Self {
            watchdog: Watchdog::start(dir.path())?,
            servers: Vec::new(),
            additional_servers: Vec::new(),
            kubeconfig,
            etcd_port: 0,
            dir,
        };
        match cluster.start_servers(options, programs, signals) {
            Ok(()) => Ok(cluster),
            Err(error) => {
                let is_retried = can_retry && port_was_taken(&error);
                if !error.is::<crate::signals::Interrupted>() && !is_retried {
                    cluster.keep_logs();
                }
                Err(error)
            }
        }
    }

    fn start_servers(
        &mut self,
        options: &Options,
        programs: &Programs,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let [etcd_port, etcd_peer_port, api_port] = free_ports()?;
        self.etcd_port = etcd_port;
        let credentials = Credentials::generate(self.dir.path())?;
        kubeconfig::write(&self.kubeconfig, api_port, &credentials)?;
        let flags = Flags {
            dir: self.dir.path().to_path_buf(),
            kubeconfig: self.kubeconfig.clone(),
            etcd_port,
            etcd_peer_port,
            api_port,
        };
        self.spawn("etcd", programs, flags.etcd(options))?;
        self.await_ready("etcd", signals, || TcpStream::connect((Ipv4Addr::LOCALHOST, etcd_port)).is_ok())?;
        self.spawn("kube-apiserver", programs, flags.apiserver(options))?;
        let client = Client::new(api_port, &credentials)?;
        self.await_ready("kube-apiserver", signals, || client.is_ready())?;
        self.start_additional_servers(&flags, &credentials, options, programs, signals)?;
        if options.wants(OptionalProgram::ControllerManager) {
            let name = "kube-controller-manager";
            self.spawn(name, programs, flags.controller_manager())?;
            // The server rejects pods until this account exists.
            let account = "/api/v1/namespaces/default/serviceaccounts/default";
            self.await_ready(name, signals, || client.has(account))?;
        }
        if options.wants(OptionalProgram::Scheduler) {
            self.spawn("kube-scheduler", programs, flags.scheduler())?;
        }
        if options.wants(OptionalProgram::Kwok) {
            self.spawn("kwok", programs, flags.kwok())?;
            // A failed request is not an error yet, because the next check repeats it.
            let mut last_error = None;
            let came_up = self.await_ready("kwok", signals, || {
                let ready = nodes::create(&client, options.nodes).and_then(|()| nodes::ready(&client));
                let ready = ready.map_err(|error| last_error = Some(error));
                ready.is_ok_and(|ready| ready >= options.nodes)
            });
            came_up.map_err(|error| match last_error {
                Some(last_error) => error.context(format!("{last_error:#}")),
                None => error,
            })?;
        }
        Ok(())
    }

    /// Starts all additional API servers at the same time.
    fn start_additional_servers(
        &mut self,
        flags: &Flags,
        credentials: &Credentials,
        options: &Options,
        programs: &Programs,
        signals: &Signals,
    ) -> anyhow::Result<()> {
        let ports: [u16; AdditionalServer::ALL.len()] = free_ports()?;
        let mut clients = Vec::new();
        for (which, port) in options.additional_servers.iter().copied().zip(ports) {
            kubeconfig::write(&self.kubeconfig_of(which), port, credentials)?;
            let flags = which.flags(flags, options, port);
            let server = self.spawn_one(which.name(), "kube-apiserver", programs, flags)?;
            self.additional_servers.push((which, server));
            clients.push((which.name(), Client::new(port, credentials)?));
        }
        clients.iter().try_for_each(|(name, client)| self.await_ready(name, signals, || client.is_ready()))
    }

    fn spawn(&mut self, name: &str, programs: &Programs, args: Vec<String>) -> anyhow::Result<()> {
        let server = self.spawn_one(name, name, programs, args)?;
        // Newest first: a server must be dropped before the servers that it depends on.
        self.servers.insert(0, server);
        Ok(())
    }

    fn spawn_one(
        &mut self,
        name: &str,
        program: &str,
        programs: &Programs,
        args: Vec<String>,
    ) -> anyhow::Result<Server> {
        let server = Server::spawn(name, programs.path(program)?, args, self.dir.path())?;
        self.watchdog.kill_at_exit(server.id())?;
        Ok(server)
    }

    fn await_ready(
        &mut self,
        name: &str,
        signals: &Signals,
        mut ready: impl FnMut() -> bool,
    ) -> anyhow::Result<()> {
        let in_time = wait_until(signals, READY_DEADLINE, || {
            self.all().try_for_each(Server::check)?;
            Ok(ready())
        })?;
        if in_time {
            return Ok(());
        }
        let server = self.all().find(|server| server.name() == name);
        let log = server.map(|server| server.log_tail()).unwrap_or_default();
        bail!("{name} was not ready within {READY_DEADLINE:?}; {log}")
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Server> {
        self.servers.iter_mut().chain(self.additional_servers.iter_mut().map(|(_, server)| server))
    }
}

fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    // All sockets stay bound until the end, so that no port is returned twice.
    let mut held = Vec::with_capacity(N);
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .context("cannot listen on 127.0.0.1; is the loopback interface up?")?;
        *port = listener.local_addr()?.port();
        held.push(listener);
    }
    Ok(ports)
}

fn port_was_taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ() {
        let [a, b, c] = free_ports().expect("loopback is up");
        assert!(a != b && b != c && a != c);
    }

    #[test]
    fn nodes_imply_kwok() {
        let options = Options { nodes: 1, ..Options::default() };
        assert!(options.wants(OptionalProgram::Kwok));
        assert!(!Options::default().wants(OptionalProgram::Kwok));
    }
}
