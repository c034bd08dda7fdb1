//! Builds the programs of the Go module in `xtask/controlplane` once: servers, kubectl, and test
//! clients. They are kept outside `target`, in a folder that is named after a hash of the inputs.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::process;
use crate::signals::Signals;
use crate::workspace;

/// The program that simulates nodes.
pub(crate) const KWOK: &str = "kwok";

/// The Go package of KWOK, which is a dependency of our Go module. The packages of all other
/// programs are in the module's own folder.
const KWOK_PACKAGE: &str = "sigs.k8s.io/kwok/cmd/kwok";

/// The environment variable with the path of the folder below which built programs are kept.
const CACHE: &str = "INFORMER_CONTROLPLANE_CACHE";

/// Interval between checks that another process has finished its build.
const LOCK_POLL: Duration = Duration::from_millis(200);

const NO_GO: &str = "Go, which builds the programs of the control plane, is not installed. \
    Install Go 1.26 or newer (https://go.dev/doc/install). If you need only etcd, kube-apiserver \
    and kubectl, you can instead set KUBEBUILDER_ASSETS to the folder that \
    `setup-envtest use -p path` prints";

/// Returns the folder of the programs `names`, after building missing ones.
pub(crate) fn ensure(names: &[&str], signals: &Signals) -> anyhow::Result<PathBuf> {
    let module = workspace::root().join("xtask/controlplane");
    let folder = cache_root()?.join(fingerprint(&module)?);
    let bin = folder.join("bin");
    if missing(&bin, names).is_empty() {
        return Ok(bin);
    }
    std::fs::create_dir_all(&bin).with_context(|| {
        format!("cannot create {}; set {CACHE} to a folder that can be written", bin.display())
    })?;
    let _lock = lock(&folder, signals)?;
    // Check again: another process may have built the programs during the wait.
    let missing = missing(&bin, names);
    if !missing.is_empty() {
        build(&module, &folder, &missing, signals)?;
    }
    Ok(bin)
}

fn missing<'a>(bin: &Path, names: &[&'a str]) -> Vec<&'a str> {
    let mut names = names.to_vec();
    names.retain(|name| !bin.join(name).is_file());
    names
}

fn build(module: &Path, folder: &Path, names: &[&str], signals: &Signals) -> anyhow::Result<()> {
    eprintln!("building {} with Go; the first time this takes some minutes", names.join(", "));
    let start = Instant::now();
    let unfinished = unfinished(folder)?;
    let mut command = go(module);
    command
        .args(["build", "-buildvcs=false", "-trimpath", "-ldflags"])
        .arg(linker_flags(&kubernetes_version(module)?))
        .arg("-o")
        .arg(unfinished.path())
        .args(names.iter().map(|name| if *name == KWOK { KWOK_PACKAGE.into() } else { format!("./{name}") }));
    let status = process::run(&mut command, signals)?;
    if !status.success() {
        bail!(
            "`go` failed ({status}), see its message above; the build needs Go 1.26 or newer (an older Go \
             downloads it if GOTOOLCHAIN=auto is set) and access to a Go module proxy"
        );
    }
    // Only complete programs are moved, so that an interrupted build leaves no partial programs.
    for name in names {
        std::fs::rename(unfinished.path().join(name), folder.join("bin").join(name))
            .with_context(|| format!("`go` built no {name}"))?;
    }
    eprintln!("built in {:.0?}", start.elapsed());
    Ok(())
}

/// Returns a new subfolder of `folder`, into which Go writes the programs. The caller must have
/// [locked](lock) `folder`.
fn unfinished(folder: &Path) -> anyhow::Result<TempDir> {
    let name = "unfinished";
    match std::fs::remove_dir_all(folder.join(name)) {
        // An interrupted build left this folder.
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot clear {}", folder.display())),
    }
    tempfile::Builder::new()
        .prefix(name)
        .rand_bytes(0)
        .tempdir_in(folder)
        .with_context(|| format!("cannot write to {}", folder.display()))
}

pub(crate) fn has_go() -> bool {
    let version = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

pub(crate) fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(module)
        // Without cgo, as in Kubernetes' own releases: the build then needs no C compiler.
        .env("CGO_ENABLED", "0")
        // A `go.work` file in a parent folder would replace our module's versions.
        .env("GOWORK", "off")
        .stdin(Stdio::null());
    command
}

/// Returns the version of Kubernetes in the module's `go.mod`.
fn kubernetes_version(module: &Path) -> anyhow::Result<String> {
    let path = module.join("go.mod");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .map(str::to_owned)
        .with_context(|| format!("{} does not require k8s.io/kubernetes", path.display()))
}

/// Returns linker flags that omit debug information and set the version that the servers report.
fn linker_flags(version: &str) -> String {
    // Kubernetes' own build sets the version with the same flags.
    let mut flags = "-s -w".to_owned();
    let mut numbers = version.trim_start_matches('v').split('.');
    let values = [
        ("gitVersion", version),
        ("gitMajor", numbers.next().unwrap_or_default()),
        ("gitMinor", numbers.next().unwrap_or_default()),
        ("gitTreeState", "clean"),
    ];
    for (name, value) in values {
        flags.push_str(&format!(" -X k8s.io/component-base/version.{name}={value}"));
    }
    flags
}

fn cache_root() -> anyhow::Result<PathBuf> {
    let folder = |name: &str| {
        let value = std::env::var_os(name)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    };
    let kept = "kube-informer/controlplane";
    let root = folder(CACHE)
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join(kept)))
        .or_else(|| Some(folder("HOME")?.join(".cache").join(kept)))
        .with_context(|| {
            format!("no folder to keep built programs in: set HOME, or set {CACHE} to a folder")
        })?;
    std::path::absolute(&root).with_context(|| format!("cannot make the path {} absolute", root.display()))
}

/// Returns a hash of the inputs: Go's version and platform, the linker flags, and the Go module.
fn fingerprint(module: &Path) -> anyhow::Result<String> {
    let output = go(module).args(["env", "GOVERSION", "GOOS", "GOARCH"]).output().context(NO_GO)?;
    if !output.status.success() {
        bail!(
            "the installed Go cannot build the control plane; install Go 1.26 or newer, or set \
             GOTOOLCHAIN=auto to download it: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let mut files = workspace::files_below(module)?;
    files.retain(|file| {
        file.extension().is_some_and(|kind| ["go", "mod", "sum"].iter().any(|go| kind == *go))
    });
    files.sort();
    let mut hash = Fnv::default();
    hash.add(&output.stdout);
    hash.add(linker_flags("").as_bytes());
    for file in files {
        let content = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(module).unwrap_or(&file);
        hash.add(name.as_os_str().as_encoded_bytes());
        hash.add(&content);
    }
    Ok(format!("{:016x}", hash.0))
}

/// Locks the folder, so that one process builds at a time. Closing the file releases the lock.
fn lock(folder: &Path, signals: &Signals) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut reported = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        if !reported {
            eprintln!("waiting for another build of the control plane");
            reported = true;
        }
        signals.pause(LOCK_POLL)?;
    }
}

/// The FNV-1a hash. The standard library's hash can change between versions, which would rebuild
/// all programs.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds `bytes` and an end mark, so that the hash of `ab` and `c` is not that of `a` and `bc`.
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linker_flags_set_the_version() {
        let flags = linker_flags("v1.36.3");
        assert!(flags.contains("version.gitVersion=v1.36.3"), "{flags}");
        assert!(flags.contains("version.gitMajor=1 "), "{flags}");
        assert!(flags.contains("version.gitMinor=36 "), "{flags}");
    }

    #[test]
    fn kubernetes_version_comes_from_go_mod() {
        let module = workspace::root().join("xtask/controlplane");
        let version = kubernetes_version(&module).expect("go.mod requires it");
        assert!(version.starts_with("v1."), "{version}");
    }

    #[test]
    fn hash_depends_on_part_boundaries() {
        let hash = |parts: &[&str]| {
            let mut hash = Fnv::default();
            parts.iter().for_each(|part| hash.add(part.as_bytes()));
            hash.0
        };
        assert_eq!(hash(&["ab", "c"]), hash(&["ab", "c"]));
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }
}
