//! Passes text through a program, from its standard input to its standard output.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

pub(crate) fn through(command: &mut Command, text: String) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().with_context(|| format!("cannot start `{name}`; is it installed?"))?;
    let stdin = child.stdin.take();
    // Write on another thread, while this thread reads. On one thread, both programs could wait for
    // each other when the pipes are full.
    let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
    let output = child.wait_with_output().with_context(|| format!("cannot read from `{name}`"))?;
    let written = writer.join();
    if !output.status.success() || !matches!(written, Ok(Some(Ok(())))) {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}` failed: {}", message.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of `{name}` is not UTF-8"))
}
