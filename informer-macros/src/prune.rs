//! `prune(...)`: paths of JSON fields, with the same checks that `PrunePaths` of informer-reflector
//! makes at run time.

use syn::{Error, LitStr, Result};

use crate::mistake::Mistakes;

/// Adds an error to `mistakes` for each invalid path, and returns the valid ones.
pub(crate) fn paths(texts: &[LitStr], mistakes: &mut Mistakes) -> Vec<String> {
    texts.iter().filter_map(|text| mistakes.take(path(text))).collect()
}

fn path(text: &LitStr) -> Result<String> {
    let path = text.value();
    let Some(names) = parse(&path) else {
        let message = format!(
            "\"{path}\" is not a path; write names of JSON fields joined by dots, \
             or `[\"name\"]` for a name with a dot"
        );
        return Err(Error::new(text.span(), message));
    };
    let needed = match names.as_slice() {
        ["metadata"] | ["apiVersion" | "kind", ..] => true,
        ["metadata", name, ..] => ["name", "namespace", "uid", "resourceVersion"].contains(name),
        _ => false,
    };
    if needed {
        let message = format!(
            "\"{path}\" can't be pruned: the field identifies an object or its version; remove this path"
        );
        return Err(Error::new(text.span(), message));
    }
    let read = ["labels", "ownerReferences", "deletionTimestamp"];
    if let ["metadata", name, ..] = names.as_slice()
        && read.contains(name)
    {
        let message = format!("\"{path}\" can't be pruned: the library reads the field; remove this path");
        return Err(Error::new(text.span(), message));
    }
    Ok(path)
}

/// Splits a path such as `a.b["c.d"].e` into its names; `None` if the path is invalid.
fn parse(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = path;
    loop {
        let (name, after) = match rest.strip_prefix("[\"") {
            Some(bracketed) => bracketed.split_once("\"]")?,
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        if name.is_empty() {
            return None;
        }
        names.push(name);
        match after.strip_prefix('.') {
            Some(next) => rest = next,
            None if after.is_empty() => return Some(names),
            None if after.starts_with('[') => rest = after,
            None => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_split_at_dots_and_brackets() {
        assert_eq!(parse("status"), Some(vec!["status"]));
        assert_eq!(parse(r#"a["b.c/d"].e["f"]"#), Some(vec!["a", "b.c/d", "e", "f"]));
        for path in ["", ".", ".a", "a.", "a..b", "a[b]", r#"a["b""#, r#"a["b"]c"#, r#"a[""]"#] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn kind_and_api_version_cannot_be_pruned() {
        for name in ["kind", "apiVersion"] {
            assert!(path(&LitStr::new(name, proc_macro2::Span::call_site())).is_err(), "{name}");
        }
    }
}
