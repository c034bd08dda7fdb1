//! Exit codes and messages of the program. A script replaces kopium.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use informer_codegen::KOPIUM_VERSION;

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets }
  scope: Namespaced
  versions:
  - { name: v1, served: true, schema: { openAPIV3Schema: { properties: { spec: { properties: {} } } } } }
";

/// Creates a folder with a definition and a script that prints kopium's output for it.
fn folder(version: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("widgets.yaml"), DEFINITION).unwrap();
    let kopium = folder.path().join("kopium");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'kopium {version}'; exit; fi\ncat > /dev/null\n\
         echo '#[derive(CustomResource, Serialize, Deserialize)]'\necho 'pub struct WidgetSpec {{}}'\n"
    );
    fs::write(&kopium, script).unwrap();
    fs::set_permissions(&kopium, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Runs the program, and returns its exit code and its messages.
fn run(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_informer-codegen"));
    command.current_dir(folder).args(arguments.split(' '));
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn stale_file_fails_the_check_and_stays() {
    let folder = folder(KOPIUM_VERSION);
    let run =
        |options: &str| run(folder.path(), &format!("--kopium ./kopium --out groups{options} widgets.yaml"));
    let (code, message) = run("");
    assert!(code == Some(0) && message.contains("wrote 3 of them"), "{message}");
    let (code, message) = run(" --check");
    assert!(code == Some(0) && message.contains("all 3 files in groups are up to date"), "{message}");

    let file = folder.path().join("groups/example_v1/widget.rs");
    let stale = fs::read_to_string(&file).unwrap() + "// More.\n";
    fs::write(&file, &stale).unwrap();
    let (code, message) = run(" --check");
    assert!(code == Some(1) && message.contains("groups/example_v1/widget.rs: different"), "{message}");
    assert_eq!(fs::read_to_string(&file).unwrap(), stale);
}

#[test]
fn unusable_kopium_fails_with_its_install_command() {
    let folder = folder("0.1.0");
    for kopium in ["./missing", "./kopium"] {
        let (code, message) = run(folder.path(), &format!("--kopium {kopium} --out groups widgets.yaml"));
        let remedy = format!("cargo install kopium --locked --version {KOPIUM_VERSION}");
        assert!(code == Some(1) && message.contains(kopium) && message.contains(&remedy), "{message}");
        assert!(!folder.path().join("groups").exists());
    }
}

#[test]
fn missing_arguments_exit_with_two() {
    let folder = folder(KOPIUM_VERSION);
    for (arguments, missing) in [("widgets.yaml", "--out"), ("--out groups", "<FILE>")] {
        let (code, message) = run(folder.path(), arguments);
        assert!(code == Some(2) && message.contains(missing), "{message}");
    }
}
