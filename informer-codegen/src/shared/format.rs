//! Formats code as `cargo fmt` does in a crate of the edition 2024.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use proc_macro2::TokenStream;

use crate::pipe;
use crate::shared::expand::{Module, Part};

/// The Rust edition that rustfmt uses to parse and format the generated code.
const EDITION: &str = "2024";

/// Returns the formatted content of a file. The rustfmt settings of `folder` apply. The comment
/// `origin` at the start marks the file as generated.
pub fn source(folder: &Path, origin: &str, module: &Module) -> anyhow::Result<String> {
    let mut text = String::new();
    for line in &module.docs {
        text.push_str(format!("//! {line}").trim_end());
        text.push('\n');
    }
    text.push_str(&format!("// {origin}; do not edit.\n"));
    for part in &module.parts {
        text.push('\n');
        text.push_str(&part_text(folder, part)?);
    }
    rustfmt(folder, text)
}

fn part_text(folder: &Path, part: &Part) -> anyhow::Result<String> {
    let (gate, parts) = match part {
        Part::Items(tokens) => return items(tokens),
        Part::Gated(gate, parts) => (gate, parts),
    };
    let texts = parts.iter().map(|part| part_text(folder, part)).collect::<anyhow::Result<Vec<_>>>()?;
    // rustfmt does not format the content of macros, so the content is formatted before macros are
    // wrapped around it.
    let inner = rustfmt(folder, texts.join("\n"))?;
    Ok(gate.macros.iter().rev().fold(inner, |inner, name| {
        let lines =
            inner.lines().map(|line| if line.is_empty() { "\n".into() } else { format!("    {line}\n") });
        format!("k8s_openapi::{name}! {{\n{}}}\n", lines.collect::<String>())
    }))
}

/// Formats items with prettyplease, because rustfmt does not turn `#[doc]` attributes into
/// comments.
fn items(tokens: &TokenStream) -> anyhow::Result<String> {
    let file = syn::parse2(tokens.clone())
        .with_context(|| format!("informer-codegen generated invalid Rust; report this bug: {tokens}"))?;
    Ok(spaced(&prettyplease::unparse(&file)))
}

/// Inserts a blank line after a line `}` that ends an item or a block, and between a line that ends
/// with `;` and documentation. prettyplease inserts no blank lines.
fn spaced(text: &str) -> String {
    let mut spaced = String::new();
    let mut before = "";
    for line in text.lines() {
        let item_ended = before == "}" && line.trim() != "}";
        let next_begins = before.ends_with(';') && line.trim().starts_with("///");
        if item_ended || next_begins {
            spaced.push('\n');
        }
        spaced.push_str(line);
        spaced.push('\n');
        before = line.trim();
    }
    spaced
}

/// Formats the text with the rustfmt of `cargo fmt` and the settings of the folder.
pub(crate) fn rustfmt(folder: &Path, text: String) -> anyhow::Result<String> {
    let program = std::env::var_os("RUSTFMT").unwrap_or_else(|| "rustfmt".into());
    let mut command = Command::new(program);
    command.args(["--edition", EDITION]).current_dir(folder);
    pipe::through(&mut command, text).context(
        "cannot format generated code with rustfmt; if it is missing, run `rustup component add rustfmt`",
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use quote::quote;

    use super::*;
    use crate::shared::gate::Gate;

    /// Returns a folder with the settings of this workspace.
    pub(crate) fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn source_is_formatted_like_cargo_fmt() {
        let item = quote! {
            impl A {
                #[doc = " B."]
                pub fn b(&self) -> B { B { a: self } }
                #[doc = " C."]
                pub fn c(&self) {}
            }
        };
        let uses = quote!(
            use b::B;
        );
        let parts = vec![Part::Items(uses), Part::Items(item)];
        let module = Module { docs: vec!["D.".into(), String::new()], parts };
        let text = source(&root(), "made from E", &module).unwrap();
        let (head, code) = text.split_once("\n\n").unwrap();
        assert_eq!(head, "//! D.\n//!\n// made from E; do not edit.");
        let b = "    /// B.\n    pub fn b(&self) -> B {\n        B { a: self }\n    }\n";
        let c = "    /// C.\n    pub fn c(&self) {}\n";
        assert_eq!(code, format!("use b::B;\n\nimpl A {{\n{b}\n{c}}}\n"));
    }

    #[test]
    fn gated_items_are_in_version_macros() {
        let all = ["v1_1", "v1_2", "v1_3", "v1_4"].map(str::to_owned);
        let gate = Gate::new(&all[1..3], &all).unwrap();
        let part = Part::Gated(
            gate,
            vec![
                Part::Items(quote!(
                    const A: u8 = 1;
                )),
                Part::Items(quote!(
                    mod b {}
                )),
            ],
        );
        let module = Module { docs: vec!["D.".into()], parts: vec![part] };
        let text = source(&root(), "made from E", &module).unwrap();
        let inner = "        const A: u8 = 1;\n\n        mod b {}\n";
        let expected = format!(
            "k8s_openapi::k8s_if_ge_1_2! {{\n    k8s_openapi::k8s_if_le_1_3! {{\n{inner}    }}\n}}\n"
        );
        assert_eq!(text.split_once("\n\n").unwrap().1, expected);
    }

    #[test]
    fn invalid_rust_is_reported() {
        let module = Module { docs: Vec::new(), parts: vec![Part::Items(quote!(fn fn))] };
        let message = format!("{:#}", source(&root(), "", &module).unwrap_err());
        assert!(message.contains("fn fn"), "{message}");
    }
}
