//! Reads the properties of built-in kinds from Kubernetes' Go module: from its discovery documents,
//! and from the output of `xtask/controlplane/kinds`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::{controlplane, process, workspace};

/// All verbs that a resource can support. Most resources support all of them.
const ALL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The properties of all built-in kinds in one version of Kubernetes.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    /// The version feature of k8s-openapi, such as `v1_36`.
    pub(crate) feature: String,
    /// The folder of Kubernetes' Go module.
    folder: PathBuf,
    kinds: HashMap<[String; 3], Facts>,
}

/// The properties of a built-in kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The verbs of the resource; empty if the resource supports [`ALL_VERBS`].
    pub(crate) verbs: Vec<String>,
    /// One string per subresource: name, `apiVersion`, kind and verbs, separated by spaces.
    pub(crate) subresources: Vec<String>,
    pub(crate) fields: Vec<String>,
    /// One string per column: type and name, as in `string Last Seen`. A column begins with `wide`
    /// if only `kubectl get -o wide` shows it.
    pub(crate) columns: Vec<String>,
}

/// The output of `go mod download -json`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Module {
    version: String,
    dir: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    group_version: String,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    /// The name of the resource, such as `pods`, or of a subresource, such as `pods/status`.
    name: String,
    kind: String,
    /// `None` means the group of the document.
    group: Option<String>,
    version: Option<String>,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

/// A kind in the output of the Go program `xtask/controlplane/kinds`.
#[derive(Deserialize)]
struct Printed {
    group: String,
    version: String,
    kind: String,
    columns: Option<Vec<Column>>,
    fields: Vec<String>,
}

#[derive(Deserialize)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    priority: u32,
}

impl Kubernetes {
    /// Reads the properties of all built-in kinds, in the Kubernetes version that
    /// `xtask/controlplane/go.mod` requires. Returns `None` if Go is not installed.
    pub(crate) fn read() -> anyhow::Result<Option<Self>> {
        if !controlplane::has_go() {
            return Ok(None);
        }
        let module = workspace::root().join("xtask/controlplane");
        let downloaded = go(&module, &["mod", "download", "-json", "k8s.io/kubernetes"])?;
        let Module { version, dir: folder } = serde_json::from_str(&downloaded)
            .context("`go mod download` printed no version and folder of k8s.io/kubernetes")?;
        let minor = version.trim_start_matches('v').split('.').take(2).collect::<Vec<_>>().join("_");
        let mut kinds = HashMap::new();
        for path in documents(&folder.join("api/discovery"))? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let document: Document = serde_json::from_str(&text)
                .with_context(|| format!("{} is not a list of resources", path.display()))?;
            kinds.extend(document.kinds());
        }
        let printed = run(&module, "./kinds")?;
        let printed: Vec<Printed> =
            serde_json::from_str(&printed).context("`xtask/controlplane/kinds` printed invalid JSON")?;
        for kind in printed {
            if let Some(facts) = kinds.get_mut(&[kind.group, kind.version, kind.kind]) {
                facts.fields = kind.fields;
                facts.columns = kind.columns.into_iter().flatten().map(Column::text).collect();
            }
        }
        Ok(Some(Self { feature: format!("v{minor}"), folder, kinds }))
    }

    pub(crate) fn open_api(&self) -> anyhow::Result<Value> {
        let path = self.folder.join("api/openapi-spec/swagger.json");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
    }

    pub(crate) fn facts(&self, group: &str, version: &str, kind: &str) -> Option<&Facts> {
        self.kinds.get(&[group, version, kind].map(str::to_owned))
    }
}

impl Document {
    fn kinds(self) -> Vec<([String; 3], Facts)> {
        let (group, version) = self.group_version.split_once('/').unwrap_or(("", &self.group_version));
        let mut subresources: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for resource in &self.resources {
            if let Some((plural, name)) = resource.name.split_once('/') {
                let api_version = match (&resource.group, &resource.version) {
                    (Some(group), Some(version)) => format!("{group}/{version}"),
                    _ => self.group_version.clone(),
                };
                let text = format!("{name} {api_version} {} {}", resource.kind, resource.verbs.join(" "));
                subresources.entry(plural).or_default().push(text);
            }
        }
        let kinds = self.resources.iter().filter(|resource| !resource.name.contains('/'));
        let facts = kinds.map(|resource| {
            let is_usual = resource.verbs == ALL_VERBS;
            let facts = Facts {
                short: resource.short_names.clone(),
                categories: resource.categories.clone(),
                verbs: if is_usual { Vec::new() } else { resource.verbs.clone() },
                subresources: subresources.remove(resource.name.as_str()).unwrap_or_default(),
                ..Facts::default()
            };
            ([group, version, &resource.kind].map(str::to_owned), facts)
        });
        facts.collect()
    }
}

impl Column {
    fn text(self) -> String {
        let wide = if self.priority > 0 { "wide " } else { "" };
        format!("{wide}{} {}", self.type_name, self.name)
    }
}

/// Returns the paths of the discovery documents in `folder`. Each version of a group has one
/// document, such as `apis__apps__v1.json`.
fn documents(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut documents = workspace::files_below(folder)?;
    documents.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("api__v") || name.starts_with("apis__") && name.matches("__").count() == 2
    });
    if documents.is_empty() {
        bail!("{} contains no discovery documents", folder.display());
    }
    Ok(documents)
}

/// Runs a Go program in the folder of its module, and returns its output.
pub(crate) fn run(module: &Path, program: &str) -> anyhow::Result<String> {
    // The servers are built with this flag, too. With different flags, Go would compile all packages twice.
    go(module, &["run", "-trimpath", program])
}

/// Runs `go` in the folder of a module, and returns its output.
fn go(module: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        controlplane::go(module).args(arguments).output().context("cannot start `go`; install Go")?;
    let printed = process::stdout(output, &format!("go {}", arguments.join(" ")))?;
    String::from_utf8(printed).context("`go` printed invalid UTF-8")
}
