//! Generates decoders for informer-reflector that read protobuf directly into the types of
//! k8s-openapi. The other decoders first make a tape, which is a list of tokens.
//!
//! The decoders support a field only if all Kubernetes versions have it with the same type, because
//! the user's program chooses the version. An object in which another field is neither zero nor
//! empty is decoded through a tape.
//!
//! A message can be inlined in another message. For example, the protobuf message `Volume` contains
//! a message `VolumeSource`, but in Rust, `Volume` itself has the fields of `VolumeSource`. The
//! parameter `outer` of a function is the message whose Rust type has the fields, such as `Volume`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;
use informer_codegen::__private::{Module, Part};
use kube_messages::{Field, Message, Messages, Shape, Type};
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::refresh::sources;

/// The kinds for which decoders are generated: kinds with many objects or many updates.
const KINDS: [&str; 9] = [
    "apps.v1.ReplicaSet",
    "coordination.v1.Lease",
    "core.v1.ConfigMap",
    "core.v1.Event",
    "core.v1.Node",
    "core.v1.Pod",
    "core.v1.Secret",
    "discovery.v1.EndpointSlice",
    "events.v1.Event",
];

const DOCS: &str = "The fields of frequent kinds, in the types of all versions of Kubernetes.";

/// The fields of the types of k8s-openapi that derive `Default`, by the path of the type and the
/// field's name in JSON.
type Types = BTreeMap<String, BTreeMap<String, Member>>;

/// A field of a Rust type.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    name: String,
    /// The type without `Option`, because a field can be optional in some versions only.
    rust_type: String,
}

/// Returns the content of informer-reflector's `messages.rs`.
pub(crate) fn module() -> anyhow::Result<Module> {
    let types = types()?;
    let messages = reachable(&types);
    let impls = messages.iter().map(|message| message_impl(message, &types));
    let impls = impls.collect::<anyhow::Result<Vec<_>>>()?;
    let kinds = KINDS.iter().map(|name| Ok((path(name)?, *name))).collect::<anyhow::Result<Vec<_>>>()?;
    let choices = kinds.iter().map(|(path, name)| {
        quote! {
            if id == TypeId::of::<#path>() {
                return Some(Direct { message: #name, read: object::<#path> });
            }
        }
    });
    let items = quote! {
        use std::any::TypeId;

        use super::{Direct, Message, Occurrence, SingleField, inlined, list, map, object, unknown};

        /// Returns the decoder for a type, if it is one of the frequent kinds. The compiler knows
        /// `K`, so a program contains only the decoders that it uses.
        #[inline]
        pub(in crate::decode) fn direct<K: 'static>() -> Option<Direct> {
            let id = TypeId::of::<K>();
            #(#choices)*
            None
        }

        #(#impls)*
    };
    Ok(Module { docs: vec![DOCS.to_owned()], parts: vec![Part::Items(items)] })
}

/// Returns the messages of [`KINDS`], and the messages nested in their supported fields at any
/// depth.
fn reachable(types: &Types) -> Vec<&'static Message> {
    let mut next: Vec<_> = KINDS.iter().filter_map(|name| Messages::all().find(name)).collect();
    let mut found = BTreeMap::new();
    while let Some(message) = next.pop() {
        if found.insert(message.name, message).is_none() {
            next.extend(nested_messages(message, message, types));
        }
    }
    found.into_values().collect()
}

/// Returns the messages in the supported fields of `message`. If a field has an inlined message,
/// returns the messages in the fields of the inlined message instead.
fn nested_messages(outer: &Message, message: &Message, types: &Types) -> Vec<&'static Message> {
    let fields = message.fields.iter().filter_map(|field| Some((field, field.message()?)));
    fields
        .flat_map(|(field, inner)| match field.is_inlined {
            true => nested_messages(outer, inner, types),
            false => member(outer, field, types).map(|_| inner).into_iter().collect(),
        })
        .collect()
}

fn message_impl(message: &Message, types: &Types) -> anyhow::Result<TokenStream> {
    let (path, arms) = (path(message.name)?, arms(message, message, types));
    Ok(quote! {
        impl Message for #path {
            fn field(&mut self, field: Occurrence<'_, '_>) -> Option<()> {
                match field.number {
                    #(#arms)*
                    _ => unknown(&field),
                }
            }
        }
    })
}

/// Returns the match arms of the decoder for the fields of `message`. The `message` is `outer`, or
/// is inlined in `outer`.
fn arms(outer: &Message, message: &Message, types: &Types) -> Vec<TokenStream> {
    // A field that the decoder does not support. With the arm `None`, an object with this field is
    // decoded through the tape. Without an arm, `unknown` does that only if the field has a value
    // that is not zero or empty.
    let left_out = |field: &Field| {
        let number = Literal::u64_unsuffixed(field.number);
        (!is_absent_if_zero(field)).then(|| quote!(#number => None,))
    };
    let fields = message.fields.iter();
    fields.filter_map(|field| arm(outer, field, types).or_else(|| left_out(field))).collect()
}

/// Returns whether a zero or empty value of `field` means that the field is not set. Go's encoder
/// writes such a value to protobuf, but JSON omits the field or has `null`.
fn is_absent_if_zero(field: &Field) -> bool {
    // JSON has a field of these types even if its value is empty.
    let is_always_present = matches!(field.value_type, Type::Message(_) | Type::Quantity | Type::IntOrString);
    field.shape == Shape::Plain && !is_always_present
}

fn arm(outer: &Message, field: &Field, types: &Types) -> Option<TokenStream> {
    let number = Literal::u64_unsuffixed(field.number);
    if field.is_inlined {
        let arms = arms(outer, field.message()?, types);
        return Some(quote! {
            #number => inlined(&field, |field| match field.number {
                #(#arms)*
                _ => unknown(&field),
            }),
        });
    }
    let name: TokenStream = member(outer, field, types)?.name.parse().ok()?;
    // An empty time counts as absent.
    let is_time = matches!(field.value_type, Type::Time | Type::MicroTime);
    let read = match field.shape {
        Shape::List => quote!(list(&mut self.#name, field)),
        Shape::Map => quote!(map(&mut self.#name, field)),
        Shape::Always | Shape::Pointer if !is_time => quote!(self.#name.present(field.content)),
        _ => quote!(self.#name.optional(field.content)),
    };
    Some(quote!(#number => #read,))
}

/// Finds the Rust field for `field`, a field of `outer` or of a message that is inlined in `outer`.
/// Returns `None` if the decoder does not support `field`.
fn member<'t>(outer: &Message, field: &Field, types: &'t Types) -> Option<&'t Member> {
    let is_supported = match field.value_type {
        Type::Message(_) => field
            .message()
            .is_some_and(|inner| !inner.is_choice && types.contains_key(&path_text(inner.name))),
        Type::Double | Type::Json => false,
        _ => true,
    };
    let member = types.get(&path_text(outer.name))?.get(field.name)?;
    let is_boxed = member.rust_type.contains("Box<");
    (is_supported && !is_boxed).then_some(member)
}

/// Returns the path of the Rust type of a message, without the crate. The path is wrong for the
/// groups `apiextensions` and `apiregistration`, whose types are in other modules.
fn path_text(message: &str) -> String {
    let module = if message.starts_with("meta.") { "apimachinery::pkg::apis" } else { "api" };
    format!("{module}::{}", message.replace('.', "::"))
}

fn path(message: &str) -> anyhow::Result<TokenStream> {
    format!("k8s_openapi::{}", path_text(message)).parse().map_err(|_| {
        anyhow::anyhow!("the name of the message `{message}` cannot be converted to a Rust path")
    })
}

/// Returns the types and the fields that all versions of k8s-openapi have.
fn types() -> anyhow::Result<Types> {
    let common = types_of_each_version()?.into_iter().reduce(|common, types| intersection(common, &types));
    common.context("k8s-openapi has no Cargo feature `v1_*`; adapt xtask/src/codegen/refresh.rs")
}

fn types_of_each_version() -> anyhow::Result<Vec<Types>> {
    let (folder, features) = sources()?;
    let groups: BTreeSet<_> = Messages::all().names().filter_map(|name| name.rsplit_once('.')).collect();
    let modules: BTreeSet<_> =
        groups.iter().map(|(module, _)| path_text(module).replace("::", "/")).collect();
    let mut versions = Vec::new();
    for feature in &features {
        let mut types = Types::new();
        for module in &modules {
            let folder = folder.join("src").join(feature).join(module);
            if folder.is_dir() {
                read_module(&folder, &module.replace('/', "::"), &mut types)?;
            }
        }
        versions.push(types);
    }
    Ok(versions)
}

fn intersection(mut common: Types, types: &Types) -> Types {
    common.retain(|path, members| {
        let others = types.get(path);
        members.retain(|name, member| others.is_some_and(|others| others.get(name) == Some(member)));
        others.is_some()
    });
    common
}

/// Adds the structs in the files of `folder`, the folder of the Rust module `module`.
fn read_module(folder: &Path, module: &str, types: &mut Types) -> anyhow::Result<()> {
    let context = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(context)? {
        let path = entry.with_context(context)?.path();
        if path.is_file() {
            let text = fs::read_to_string(&path).with_context(context)?;
            if let Some((name, members)) = read_type(&text) {
                types.insert(format!("{module}::{name}"), members);
            }
        }
    }
    Ok(())
}

/// Returns the name and the fields of the first public struct in a file, if that struct derives
/// `Default`. For a tuple struct, the returned name is not the name of a type, and has no fields.
fn read_type(text: &str) -> Option<(&str, BTreeMap<String, Member>)> {
    let (attributes, declaration) = text.split_once("pub struct ")?;
    if !attributes.contains(" Default,") {
        return None;
    }
    let (name, body) = declaration.split_once(" {\n")?;
    let (fields, _) = body.split_once("\n}\n")?;
    let field = |line: &str| {
        let (name, rust_type) = line.trim().strip_prefix("pub ")?.strip_suffix(',')?.split_once(": ")?;
        let optional = rust_type.strip_prefix("Option<").and_then(|inner| inner.strip_suffix('>'));
        Some((name.to_owned(), optional.unwrap_or(rust_type).to_owned()))
    };
    let fields: BTreeMap<_, _> = fields.lines().filter_map(field).collect();
    let key = |line: &str| {
        let (json, name) = line.trim().strip_suffix(',')?.split_once("\" => Field::Key_")?;
        let rust_type = fields.get(name)?.clone();
        Some((json.strip_prefix('"')?.to_owned(), Member { name: name.to_owned(), rust_type }))
    };
    Some((name, text.lines().filter_map(key).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds the names of the fields of `message`, and of messages that are inlined in it.
    fn names(message: &Message, found: &mut BTreeSet<&str>) {
        for field in &message.fields {
            match field.message() {
                Some(inner) if field.is_inlined => names(inner, found),
                _ => _ = found.insert(field.name),
            }
        }
    }

    #[test]
    fn messages_have_the_fields_of_all_kubernetes_versions() {
        let versions = types_of_each_version().unwrap();
        let (mut compared, mut missing) = (0, Vec::new());
        for message in Messages::all().names().filter_map(|name| Messages::all().find(name)) {
            // The envelope around an object has its type.
            let mut known = BTreeSet::from(["apiVersion", "kind"]);
            names(message, &mut known);
            let path = path_text(message.name);
            for field in versions.iter().filter_map(|types| types.get(&path)).flat_map(BTreeMap::keys) {
                compared += 1;
                if !message.is_choice && !known.contains(field.as_str()) {
                    missing.push(format!("{path}::{field}"));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
        assert!(versions.len() >= 5 && compared > 10_000, "{} versions, {compared} fields", versions.len());
    }
}
