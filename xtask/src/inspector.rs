//! `cargo xtask inspector`: tests the inspector of informer-monitor in a headless Chromium.

use std::env;
use std::process::ExitCode;

use anyhow::bail;

use crate::signals::Signals;
use crate::{process, workspace};

/// The environment variable with the path of chromedriver.
const DRIVER: &str = "CHROMEDRIVER";

/// The environment variable that makes the tests write pictures into docs/guide/src/images.
const PICTURES: &str = "INFORMER_SCREENSHOTS";

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Arguments of `cargo xtask inspector`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Also write the pictures of the documentation, docs/guide/src/images/inspector*.png
    #[arg(long)]
    screenshots: bool,

    /// Test filters and options, as after `cargo test --`
    #[arg(last = true, value_name = "FILTER")]
    filter: Vec<String>,
}

pub(crate) fn run(args: &Args, signals: &Signals) -> anyhow::Result<ExitCode> {
    let missing =
        missing(on_path("chromedriver") || env::var_os(DRIVER).is_some(), BROWSERS.into_iter().any(on_path));
    if !missing.is_empty() {
        bail!(
            "programs that the tests need are not on PATH: {}; on Debian: apt-get install chromium chromium-driver \
             (or set {DRIVER} to the path of chromedriver)",
            missing.join(" and ")
        );
    }
    let mut command = workspace::cargo();
    command.args(["test", "--workspace", "--test", "browser", "--"]).args(&args.filter);
    if args.screenshots {
        command.env(PICTURES, "1");
    } else {
        command.env_remove(PICTURES);
    }
    Ok(process::exit_code(process::run(&mut command, signals)?))
}

fn missing(has_driver: bool, has_browser: bool) -> Vec<&'static str> {
    let programs = [(has_browser, "chromium"), (has_driver, "chromedriver")];
    programs.into_iter().filter(|(is_there, _)| !is_there).map(|(_, name)| name).collect()
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH");
    path.is_some_and(|path| env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_programs_are_named() {
        assert_eq!(missing(true, true), Vec::<&str>::new());
        assert_eq!(missing(false, true), ["chromedriver"]);
        assert_eq!(missing(false, false), ["chromium", "chromedriver"]);
    }
}
