//! `cargo xtask bench wire`: replays recorded responses of a real API server to our informers,
//! client-go, kube-rs and fabric8, and compares CPU time, memory, speed and latency. All clients
//! with the same encoding receive the same recording.

mod chart;
mod client;
mod fabric8;
mod forms;
mod latency;
mod objects;
mod page;
mod parts;
mod programs;
mod record;
mod recording;
mod replay;
mod results;
mod runs;
mod usage;
mod web_socket;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};

use self::forms::{Encoding, FABRIC8, FORMS, Form};
use self::objects::{Objects, Places};
use self::parts::{HANDLERS, Part, SIZES};
use self::programs::Programs;
use self::recording::{Recording, versions};
use self::results::Results;
use self::runs::{Figures, Run};
use self::usage::available_memory;
use super::machine::Machine;
use crate::signals::Signals;
use crate::{process, workspace};

/// Arguments of `cargo xtask bench wire`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure 2,000 pods (the part `growth`: up to 10,000) in one round, for a first impression;
    /// does not change docs/benchmarks.md
    #[arg(long)]
    quick: bool,

    /// Number of pods in the recorded responses that the clients receive
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    objects: usize,

    /// Number of rounds; the tables show medians
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,

    /// Record the responses of an API server again, even if a recording exists
    #[arg(long)]
    record: bool,

    /// Measure only clients whose name contains this text; can be repeated. Does not change
    /// docs/benchmarks.md
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// Make only these measurements
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART", default_values_t = Part::ALL)]
    part: Vec<Part>,
}

struct Bench<'a> {
    programs: Programs,
    json: Replayed,
    protobuf: Replayed,
    versions: Vec<u64>,
    forms: Vec<&'static Form>,
    /// The maximum of the sizes that the part `growth` measures.
    max_size: usize,
    signals: &'a Signals,
}

/// A recording, and the positions of identifiers, such as UIDs, in its objects.
struct Replayed {
    recording: Arc<Recording>,
    places: Arc<Places>,
}

/// Measures clients and prints tables. Without `--only` and `--quick`, also updates
/// docs/benchmarks.md.
pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        return run_optimized(signals);
    }
    let (objects, rounds) = if args.quick { (2_000, 1) } else { (args.objects, args.rounds) };
    let programs = Programs::build(signals)?;
    let forms = clients(&programs, &args.only)?;
    let (folder, description) = record::ensure(objects, args.record, &programs, signals)?;
    let clients: Vec<&str> = forms.iter().map(|form| form.name).collect();
    let max_size = if args.quick { 10_000 } else { usize::MAX };
    let bench = Bench::new(&folder, programs, forms, max_size, signals)?;
    let measured = format!(
        "{}{}; {} pods of Kubernetes {}; rounds: {rounds}, of which these are the medians.",
        Machine::here(clients.iter().any(|client| client.starts_with("client-go")))?,
        if clients.contains(&FABRIC8) { format!("; {}", fabric8::versions()?) } else { String::new() },
        description.objects,
        description.server,
    );
    let root = workspace::root();
    for part in &args.part {
        let results = bench.rounds(*part, rounds)?;
        println!("{measured}\n\n{}\n", results.table(*part, &clients));
        let file = folder.join(part.name()).with_extension("json");
        std::fs::write(&file, format!("{:#}\n", results.json()))
            .with_context(|| format!("cannot write {}", file.display()))?;
        if args.only.is_empty() && !args.quick {
            page::write(&root, *part, &measured, &results, &clients)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the clients whose name contains a text of `only`, or all clients if `only` is empty.
/// Leaves out clients whose program is not built.
fn clients(programs: &Programs, only: &[String]) -> anyhow::Result<Vec<&'static Form>> {
    let is_wanted =
        |form: &&Form| only.is_empty() || only.iter().any(|text| form.name.contains(text.as_str()));
    let is_built = |form: &&Form| programs.command(form.program).is_some();
    let clients: Vec<_> = FORMS.iter().filter(is_wanted).filter(is_built).collect();
    if clients.is_empty() {
        let names: Vec<&str> = FORMS.iter().filter(is_built).map(|form| form.name).collect();
        bail!("no client has a name with the text of `--only`; the clients are: {}", names.join("; "));
    }
    Ok(clients)
}

/// Runs this command again in release mode, because the replaying server takes CPU time from the
/// clients.
fn run_optimized(signals: &Signals) -> anyhow::Result<ExitCode> {
    let mut command = workspace::cargo();
    command
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1));
    Ok(process::exit_code(process::run(&mut command, signals)?))
}

impl<'a> Bench<'a> {
    fn new(
        folder: &Path,
        programs: Programs,
        forms: Vec<&'static Form>,
        max_size: usize,
        signals: &'a Signals,
    ) -> anyhow::Result<Self> {
        let json = Arc::new(Recording::read(folder, Encoding::Json)?);
        let protobuf = Arc::new(Recording::read(folder, Encoding::Protobuf)?);
        let replayed = |recording: Arc<Recording>| {
            Ok::<_, anyhow::Error>(Replayed { places: Arc::new(Places::find(&json, &recording)?), recording })
        };
        Ok(Self {
            versions: versions(&json)?,
            protobuf: replayed(protobuf)?,
            json: replayed(Arc::clone(&json))?,
            forms,
            max_size,
            programs,
            signals,
        })
    }

    /// Measures `part` with all clients `rounds` times, after a warm-up whose results are not used.
    fn rounds(&self, part: Part, rounds: u8) -> anyhow::Result<Results> {
        let mut results = Results::default();
        // Round 0 is the warm-up, which reads the programs into memory.
        for round in 0..=rounds {
            let (part_name, warm_up) = (part.name(), if round == 0 { ", a warm-up" } else { "" });
            eprintln!("== {part_name}: round {round} of {rounds}{warm_up}");
            // Each round begins with another client, because the order can matter: the first client
            // was often slower.
            let turns = self.forms.iter().cycle().skip(usize::from(round)).take(self.forms.len());
            for form in turns {
                let figures =
                    self.measure(part, form).with_context(|| format!("cannot measure {}", form.name))?;
                let shown: Vec<String> =
                    figures.iter().map(|(name, value)| format!("{name} {value:.6}")).collect();
                eprintln!("{}: {}", form.name, shown.join(", "));
                if round > 0 {
                    results.add(form.name, figures);
                }
            }
        }
        Ok(results)
    }

    fn measure(&self, part: Part, form: &'static Form) -> anyhow::Result<Figures> {
        let command = || {
            self.programs
                .command(form.program)
                .context("the client's program is missing, because it was not built")
        };
        let mut figures = Figures::new();
        match part {
            Part::Throughput => figures = self.prepare(form, 1, None).throughput(command()?)?,
            Part::Latency => figures = self.prepare(form, 1, None).latency(command()?)?,
            Part::Lists => {
                let run = Run { is_list: true, ..self.prepare(form, 1, None) };
                figures = run.sync_only(command()?, "list")?.0;
            }
            Part::Handlers if !form.has_handlers => {}
            Part::Handlers => {
                for handlers in HANDLERS {
                    figures.extend(self.prepare(form, handlers, None).throughput(command()?)?);
                }
            }
            // A recording contains a list of all its objects, but no lists of other sizes.
            Part::Growth if form.is_list => {}
            Part::Growth => {
                let mut next_peak = 0.0;
                for size in SIZES.into_iter().filter(|size| *size <= self.max_size) {
                    if next_peak > available_memory()? {
                        eprintln!(
                            "{}: skipping the initial sync of {size} or more objects, because it would not fit into memory",
                            form.name
                        );
                        break;
                    }
                    let (of_size, peak) =
                        self.prepare(form, 1, Some(size)).sync_only(command()?, &size.to_string())?;
                    figures.extend(of_size);
                    // Each size is ten times the size before.
                    next_peak = 10.0 * peak;
                }
            }
        }
        Ok(figures)
    }

    /// Returns the inputs of one measurement of the client `form`. If `objects` is `None`, the
    /// server sends all recorded objects.
    fn prepare(&self, form: &'static Form, handlers: usize, objects: Option<usize>) -> Run<'_> {
        let replayed = match form.encoding {
            Encoding::Json => &self.json,
            Encoding::Protobuf => &self.protobuf,
        };
        let recording = Arc::clone(&replayed.recording);
        let last_pass = self.versions[self.versions.len() - recording.objects()];
        let objects = match objects {
            None => Objects::recorded(recording),
            Some(count) => Objects::with_clones(recording, Arc::clone(&replayed.places), count),
        };
        Run {
            form,
            objects,
            handlers,
            is_list: form.is_list,
            last_pass,
            versions: &self.versions,
            signals: self.signals,
        }
    }
}
