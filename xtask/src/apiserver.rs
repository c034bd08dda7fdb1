//! `cargo xtask apiserver`: runs a control plane until the user stops it or, with `-- CMD`, until
//! the program CMD ends.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::controlplane::{Cluster, Options, Programs};
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// Interval between checks that the servers still run, if no command runs against them.
const CHECK: Duration = Duration::from_millis(500);

/// Arguments of `cargo xtask apiserver`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,

    /// Only find or build the programs of the control plane, and print their paths
    #[arg(long, conflicts_with = "command")]
    build_only: bool,

    /// A command to run with KUBECONFIG set; the servers stop when it ends
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let programs = Programs::find(&args.options, signals)?;
    if args.build_only {
        for (name, path) in programs.iter() {
            println!("{name} {}", path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut cluster = start(&args.options, &programs, signals)?;
    match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest);
            workspace::remove_package_variables(&mut command);
            set_environment(&mut command, &cluster, &programs)?;
            let status = process::run_interactive(&mut command, signals, || cluster.check())?;
            Ok(process::exit_code(status))
        }
        None => {
            println!("{}", cluster.kubeconfig().display());
            eprintln!("set KUBECONFIG to the printed path; Ctrl-C stops the servers");
            while signals.pause(CHECK).is_ok() {
                cluster.check()?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

pub(crate) fn start(options: &Options, programs: &Programs, signals: &Signals) -> anyhow::Result<Cluster> {
    let began = Instant::now();
    let cluster = Cluster::start(options, programs, signals)?;
    eprintln!("the control plane is ready after {:.1?}", began.elapsed());
    Ok(cluster)
}

/// Runs `command`, which uses `cluster`. Fails if a server of the cluster ends first, except a
/// server that tests may stop.
pub(crate) fn run_against(
    cluster: &mut Cluster,
    programs: &Programs,
    command: &mut Command,
    signals: &Signals,
) -> anyhow::Result<ExitCode> {
    set_environment(command, cluster, programs)?;
    let status = process::run_checked(command, signals, || cluster.check())?;
    Ok(process::exit_code(status))
}

/// Sets KUBECONFIG for `cluster`. If `programs` include kubectl, adds it to the PATH.
fn set_environment(command: &mut Command, cluster: &Cluster, programs: &Programs) -> anyhow::Result<()> {
    command.env("KUBECONFIG", cluster.kubeconfig());
    if let Some(folder) = programs.path("kubectl").ok().and_then(Path::parent) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)
            .with_context(|| format!("cannot add kubectl's folder {} to PATH", folder.display()))?;
        command.env("PATH", path);
    }
    Ok(())
}
