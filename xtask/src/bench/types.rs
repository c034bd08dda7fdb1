//! `cargo xtask bench --types`: measures how much each additional type of objects adds to the
//! compile time and the size of a program. The programs are in `target/types`.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::figures::median;
use crate::codegen::data;
use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// The number of Kubernetes types, each with an informer, in each measured program.
const TYPES: [usize; 3] = [1, 5, 40];

const MANIFEST: &str = r#"[package]
name = "types"
version = "0.1.0"
edition = "2024"

[workspace]

[dependencies]
informer-factory = { path = "../../informer-factory" }
k8s-openapi = { version = "*", default-features = false, features = ["v1_36"] }
kube = { version = "*", default-features = false, features = ["config", "ring", "rustls-tls"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
"#;

/// The CPU time to build a program without its dependencies, and the program's size.
#[derive(Clone, Copy, Debug)]
struct Cost {
    cpu_seconds: f64,
    bytes: f64,
}

/// Builds a program for each number in [`TYPES`], and prints the CPU time and the size of each. The
/// printed values are medians of `rounds` builds.
pub(super) fn run(rounds: u8, signals: &Signals) -> anyhow::Result<()> {
    let package = workspace::root().join("target/types");
    fs::create_dir_all(package.join("src"))
        .with_context(|| format!("cannot create {}", package.display()))?;
    write(&package.join("Cargo.toml"), MANIFEST)?;
    // The same versions of all dependencies as in the workspace.
    fs::copy(workspace::root().join("Cargo.lock"), package.join("Cargo.lock"))?;
    let types = types()?;
    build(&package, &types[..0], signals)?;
    let mut costs = TYPES.map(|_| Vec::new());
    for _ in 0..rounds {
        for (costs, count) in costs.iter_mut().zip(TYPES) {
            costs.push(build(&package, &types[..count], signals)?);
        }
    }
    let medians = costs.map(|costs| Cost {
        cpu_seconds: median(costs.iter().map(|cost| cost.cpu_seconds)),
        bytes: median(costs.iter().map(|cost| cost.bytes)),
    });
    println!("| types | CPU | size | per further type |\n|---|---|---|---|");
    let [first, ..] = medians;
    for (count, cost) in TYPES.iter().zip(medians) {
        let further = (count - 1) as f64;
        let each = if *count == 1 {
            "–".to_owned()
        } else {
            let (cpu, bytes) = (cost.cpu_seconds - first.cpu_seconds, cost.bytes - first.bytes);
            format!("{:.2} s, {:.0} KB", cpu / further, bytes / further / 1e3)
        };
        println!("| {count} | {:.1} s | {:.1} MB | {each} |", cost.cpu_seconds, cost.bytes / 1e6);
    }
    Ok(())
}

/// Returns the Rust paths of all watchable Kubernetes types in stable API versions, the most used
/// types first.
fn types() -> anyhow::Result<Vec<String>> {
    let data = data::read(&workspace::root())?;
    let mut types: Vec<String> = ["Pod", "Node", "Service", "ConfigMap"]
        .map(|kind| format!("k8s_openapi::api::core::v1::{kind}"))
        .to_vec();
    let versions = data.groups.iter().flat_map(|group| &group.versions);
    for version in versions.filter(|version| !version.version.contains(['a', 'b'])) {
        for kind in version.kinds.iter().filter(|kind| kind.is_in(&data.kubernetes)) {
            let path = format!("{}::{}", version.module, kind.kind);
            if !types.contains(&path) {
                types.push(path);
            }
        }
    }
    Ok(types)
}

/// Builds a program with an informer for each type, and returns the cost of this build.
fn build(package: &Path, types: &[String], signals: &Signals) -> anyhow::Result<Cost> {
    write(&package.join("src/main.rs"), &source(types))?;
    let mut command = workspace::cargo();
    command.current_dir(package).args(["build", "--release", "--quiet", "--target-dir", "target"]);
    let before = cpu_of_children()?;
    let problem = format!("the program with {} types does not build; see the message above", types.len());
    process::run_or_fail(&mut command, signals, &problem)?;
    let cpu_seconds = cpu_of_children()? - before;
    let program = package.join("target/release/types");
    let bytes = fs::metadata(&program).with_context(|| format!("cannot read {}", program.display()))?.len();
    Ok(Cost { cpu_seconds, bytes: bytes as f64 })
}

fn source(types: &[String]) -> String {
    let informers = types.iter().map(|path| {
        format!(
            "    let informer = factory.informer::<{path}>();
    let handler = informer.add_handlers(|handlers| {{
        handlers
            .on_add(|object, _| println!(\"+ {{}}\", object.key()))
            .on_delete(|object| println!(\"- {{}}\", object.key()))
    }});
    handler.detach();
    count += informer.lister().list(&Default::default()).len();
"
        )
    });
    format!(
        "#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {{
    let client = kube::Client::try_default().await?;
    let factory = informer_factory::SharedInformerFactory::new(client);
    let mut count = 0;
{}    factory.start();
    factory.wait_for_cache_sync().await?;
    println!(\"{{count}}\");
    Ok(())
}}
",
        informers.collect::<String>()
    )
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the CPU time of all ended child processes, in seconds.
pub(super) fn cpu_of_children() -> anyhow::Result<f64> {
    let text =
        fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat; this needs Linux")?;
    // Field 2 is the program's name in parentheses, which can contain blanks. `fields` begins with field 3 of
    // proc_pid_stat(5).
    let fields = text
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace())
        .context("/proc/self/stat has an unknown format")?;
    let ticks: u64 = fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}
