//! Compares the generated code with the README, and tests how the derive reads `#[kube(...)]` and
//! the attribute `crate`, without compiling kube's derive.

use std::ops::Range;

use proc_macro2::TokenStream;
use quote::quote;

use super::derive;

/// The README, which contains the example and its generated code.
const README: &str = include_str!("../../README.md");

fn derived(item: TokenStream) -> syn::Result<TokenStream> {
    derive(&syn::parse2(item)?)
}

/// Returns the range of the README's code block after the comment `<!-- name -->`, without its
/// fences.
fn place_of(name: &str) -> Range<usize> {
    let comment = format!("<!-- {name} -->\n");
    let fence = README.find(&comment).expect("the README has the block") + comment.len();
    let start = fence + README[fence..].find('\n').expect("the fence has a line of its own") + 1;
    start..start + README[start..].find("\n```\n").expect("the block ends")
}

/// Formats the code, with a blank line between items.
fn formatted(code: TokenStream) -> String {
    let file: syn::File = syn::parse2(code).expect("the generated code is Rust");
    let items = file.items.into_iter().map(|item| {
        let alone = syn::parse2(quote!(#item)).expect("an item is Rust");
        prettyplease::unparse(&alone).trim_end().to_owned()
    });
    items.collect::<Vec<String>>().join("\n\n")
}

#[test]
fn readme_contains_the_generated_code() {
    let item: TokenStream = README[place_of("derive")].parse().expect("the example is Rust");
    let text = formatted(derived(item).expect("the derive accepts the example"));
    let shown = place_of("generated");
    if std::env::var_os("UPDATE_README").is_some() {
        let mut readme = README.to_owned();
        readme.replace_range(shown, &text);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
        std::fs::write(path, readme).expect("the README can be written");
    } else {
        assert_eq!(README[shown], text, "run the test with UPDATE_README=1, and review the changes");
    }
}

#[test]
fn attribute_that_kube_sets_is_rejected() {
    let rejected = derived(quote! {
        #[kube(group = "example.com", version = "v1", kind = "Thing", namespaced)]
        #[informer(cluster)]
        struct ThingSpec {}
    });
    assert_eq!(
        rejected.expect_err("the derive fails").to_string(),
        "`cluster` conflicts with `#[kube(...)]`, which defines the resource; remove `cluster`"
    );
}

#[test]
fn mistake_in_kube_attribute_generates_nothing() {
    for attribute in [
        quote!(#[kube(group = "example.com", version = "v1")]),
        quote!(#[kube(group = 1, version = "v1", kind = "Thing")]),
        quote!(#[kube(group = "example.com" version = "v1", kind = "Thing")]),
    ] {
        let generated = derived(quote!(#attribute struct ThingSpec {})).expect("kube reports the error");
        assert!(generated.is_empty(), "{generated}");
    }
}

#[test]
fn other_kube_attributes_are_ignored() {
    let generated = derived(quote! {
        #[kube(group = "example.com", version = "v1", kind = "Thing", root = "Root", plural = "thingies", no_spec)]
        #[kube(status = a::Status, printcolumn(name = "A", json_path = ".a"), derive = "Default")]
        #[kube(validation = Rule::new("a").message("b"), scale = r#"{"a": 1}"#, crates(kube_core = "b"))]
        enum ThingSpec { A }
    });
    let generated = generated.expect("valid attributes").to_string();
    assert!(
        generated.contains("thingies : Root") && generated.contains("trait RootInformers"),
        "{generated}"
    );
}

#[test]
fn view_of_endpoints_requests_endpoints() {
    let generated = derived(quote! {
        #[informer(group = "", version = "v1", kind = "Endpoints", namespaced)]
        struct SlimEndpoints { metadata: ObjectMeta }
    });
    let generated = generated.expect("valid attributes").to_string();
    assert!(generated.contains("\"endpoints\""), "{generated}");
}

#[test]
fn crate_attribute_sets_the_path() {
    let generated = derived(quote! {
        #[informer(crate = my::door, group = "", version = "v1", kind = "Pod", namespaced)]
        #[informer(index(name = "by_a", path = "a.b"), index(name = "by_b", with = c))]
        struct Thing { metadata: ObjectMeta }
    });
    let generated = generated.expect("valid attributes").to_string();
    assert!(generated.contains("my :: door :: groups :: CoreV1") && !generated.contains("informer_factory"));
}
