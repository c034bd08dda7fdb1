//! Checks that the layers of kube-simulator depend downwards only.

use super::Finding;
use super::sources::{Source, code};

/// Folders of kube-simulator, each with the modules that it may use. Other folders may use all
/// modules.
const LAYERS: [(&str, &[&str]); 4] = [
    ("kinds", &["kinds"]),
    ("storage", &["kinds", "storage"]),
    ("api", &["kinds", "storage", "api"]),
    ("http", &["kinds", "storage", "api", "http", "fault"]),
];

pub(crate) fn check(source: &Source) -> Vec<Finding> {
    let Ok(path) = source.path.strip_prefix("kube-simulator/src") else {
        return Vec::new();
    };
    let folder = path.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == folder) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for (number, line) in source.lines() {
        for after in code(line).split("crate::").skip(1) {
            let module = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if !allowed.contains(&module) {
                let remedy =
                    format!("`{folder}` must not use `{module}`; move the code, or pass values as arguments");
                findings.push(Finding::new(&source.path, number, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_of_a_higher_layer_is_found() {
        let text = "use crate::kinds::Facts;\n// crate::http\nuse crate::api::status;\n";
        let findings = check(&Source::new("kube-simulator/src/storage/table.rs", text));
        assert_eq!(findings.iter().map(|finding| finding.line).collect::<Vec<_>>(), [3]);
        assert_eq!(check(&Source::new("kube-simulator/src/api/status.rs", text)), []);
        assert_eq!(check(&Source::new("informer-core/src/storage/table.rs", text)), []);
    }
}
