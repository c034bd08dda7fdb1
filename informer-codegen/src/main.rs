//! The command-line program `informer-codegen`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use informer_codegen::Generator;

/// Generates Rust types and typed informer accessors from custom resource definitions
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Files with custom resource definitions, in YAML or JSON
    #[arg(required = true, value_name = "FILE")]
    definitions: Vec<PathBuf>,

    /// The folder for types and accessors; files that were generated before are replaced
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Write nothing; fail if a file is missing, different or no longer generated
    #[arg(long)]
    check: bool,

    /// The path of kopium, which generates the types
    #[arg(long, value_name = "PROGRAM", default_value = "kopium")]
    kopium: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let generator = Generator::new(args.definitions).kopium(args.kopium);
    let outcome = if args.check { generator.check(&args.out) } else { generator.write(&args.out) };
    match outcome {
        Ok(report) => {
            for part_with_reason in &report.skipped {
                eprintln!("skipped a part of the definitions: {part_with_reason}");
            }
            let (written, files, out) = (report.written, report.files, args.out.display());
            if args.check {
                eprintln!("all {files} files in {out} are up to date");
            } else {
                eprintln!("all {files} files in {out} are up to date; wrote {written} of them");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
