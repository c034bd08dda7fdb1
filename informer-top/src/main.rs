//! `informer-top`: a terminal view of the informers in a running program. It reads the inspector of
//! informer-monitor.

mod app;
mod client;
mod data;
mod details;
mod format;
mod table;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use app::{App, Update};
use client::{Address, Client};

const TOKEN_VARIABLE: &str = "INFORMER_TOP_TOKEN";

const ABOUT: &str = "Shows the Kubernetes informers of a running program: their health, rates and lag";

const NEEDS: &str = "The program must serve informer_monitor::Inspector. If the inspector has a token, set \
    INFORMER_TOP_TOKEN or pass --token-file.\nWhile the table is shown, `?` explains keys and columns.";

#[derive(Debug, Parser)]
#[command(version, about = ABOUT, after_help = NEEDS)]
struct Args {
    #[arg(
        help = "The address of the inspector: http://HOST:PORT or unix:/PATH",
        default_value = "http://127.0.0.1:8080",
        value_parser = Address::parse
    )]
    address: Address,

    // No option has the token itself as its value, because other users of the machine can see the
    // arguments.
    #[arg(
        long,
        value_name = "FILE",
        help = "A file with the inspector's token, instead of the variable INFORMER_TOP_TOKEN"
    )]
    token_file: Option<PathBuf>,

    /// The time between two readings, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// Print the table once as plain text; the default if the output is not a terminal
    #[arg(long)]
    once: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().ok().filter(|number| (0.1..=3600.0).contains(number));
    number.map(Duration::from_secs_f64).ok_or_else(|| "use a number from 0.1 to 3600".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let token = token(&args)?;
    let client = Client::new(args.address, token.as_deref())?;
    let mut app = App::new(client.address().to_string());
    // A failure of the first request, such as a wrong address or token, ends the program. While the
    // table is shown, later failures do not.
    let overview = client.overview().await.map_err(|failure| failure.at(client.address()))?;
    app.update(Update::Overview(Ok(overview)));
    if !args.once && io::stdout().is_terminal() {
        return terminal::run(app, client, args.interval).await;
    }
    // Rates need two readings.
    tokio::time::sleep(args.interval).await;
    let overview = client.overview().await.map_err(|failure| failure.at(client.address()))?;
    app.update(Update::Overview(Ok(overview)));
    print(&view::plain(&app))?;
    Ok(())
}

/// Returns the inspector's token, from the file `--token-file` or from the variable
/// `INFORMER_TOP_TOKEN`.
fn token(args: &Args) -> Result<Option<String>, String> {
    let token = match &args.token_file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the token file {}: {error}", path.display()))?,
        None => match std::env::var(TOKEN_VARIABLE) {
            Ok(token) => token,
            Err(std::env::VarError::NotPresent) => return Ok(None),
            // The text of this error contains the value of the variable, which is secret.
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(format!("{TOKEN_VARIABLE} is not valid UTF-8; check its source"));
            }
        },
    };
    Ok(Some(token.trim().to_owned()).filter(|token| !token.is_empty()))
}

fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe is no error: in `informer-top | head`, `head` needs no more lines.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
