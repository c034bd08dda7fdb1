//! User-defined names that equal names of generated code or of the standard library, or are raw
//! identifiers. In the derive's attributes, such a name means the same as in the surrounding module.

use std::sync::Arc;

use informer_factory::{Informer, InformerOptions, SharedInformerFactory};
use informer_testing::MemorySource;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{names, within};

#[derive(Informer, Deserialize, Clone)]
#[informer(group = "names.example.com", version = "v1", kind = "Named", cluster)]
#[informer(index(name = "by_values", with = values))]
#[informer(index(name = "by_object", with = object))]
#[informer(index(name = "by_index", with = index))]
#[informer(index(name = "by_at", with = |named: &Named| at(named)))]
#[informer(index(name = "by_call", with = call))]
#[informer(index(name = "by_returned", with = returned))]
#[informer(index(name = "by_into", with = |named: &Named| Own(named.color.clone()).into_values()))]
#[informer(index(name = "values", with = values))]
struct Named {
    metadata: ObjectMeta,
    color: String,
}

fn values(named: &Named) -> Vec<String> {
    vec![named.color.clone()]
}

fn object(named: &Named) -> Option<String> {
    Some(named.color.clone())
}

fn index(named: &Named) -> Result<Vec<String>, String> {
    Ok(values(named))
}

fn at(named: &Named) -> Vec<String> {
    values(named)
}

fn call(named: &Named) -> Vec<String> {
    values(named)
}

fn returned(named: &Named) -> Vec<String> {
    values(named)
}

/// A type whose method has the same name as a method that the generated code calls.
struct Own(String);

trait IntoValues {
    fn into_values(self) -> Vec<String>;
}

impl IntoValues for Own {
    fn into_values(self) -> Vec<String> {
        vec![self.0]
    }
}

#[tokio::test]
async fn index_function_can_have_any_name() {
    let source = MemorySource::new("names");
    for (name, color) in [("a", "red"), ("b", "blue")] {
        let named = serde_json::from_value(json!({ "metadata": { "name": name }, "color": color }));
        source.create(named.expect("a valid object")).expect("a new object");
    }
    let (named, task) = Named::new_informer_from(Arc::new(source), InformerOptions::new());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(task.run(shutdown.clone()));
    within(named.synced().wait()).await.expect("synced");
    let found = [
        named.by_values("red"),
        named.by_object("red"),
        named.by_index("red"),
        named.by_at("red"),
        named.by_call("red"),
        named.by_returned("red"),
        named.by_into("red"),
        NamedIndices::values(&named, "red"),
    ];
    for found in found {
        assert_eq!(names(&found), ["a"]);
    }
    shutdown.cancel();
    within(running).await.expect("no panic");
}

/// A module where other items hide the names of the prelude. Many of these items are otherwise
/// unused.
#[allow(dead_code)]
mod without_a_prelude {
    use informer_factory::Informer;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    // These imports hide macros that the generated code needs.
    use schemars::JsonSchema as Debug;
    use serde::Deserialize;
    use serde::Serialize as Clone;
    use serde::Serialize as Copy;

    pub(super) struct Result;
    pub(super) struct Option;
    pub(super) struct String;
    pub(super) struct Vec;
    pub(super) struct Box;
    #[allow(non_snake_case)]
    pub(super) fn Some() {}
    #[allow(non_snake_case)]
    pub(super) fn Ok() {}

    #[derive(Informer, Deserialize)]
    #[informer(
        group = "prelude.example.com",
        version = "v1",
        kind = "Bare",
        namespaced,
        default_resync = "10m"
    )]
    #[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"), index(name = "by_name", with = name))]
    pub(super) struct Bare {
        metadata: ObjectMeta,
    }

    fn name(bare: &Bare) -> ::std::option::Option<::std::string::String> {
        bare.metadata.name.clone()
    }

    #[derive(Informer, Deserialize)]
    #[informer(group = "other.example.com", version = "v1", kind = "Other", namespaced, no_accessor)]
    pub(super) struct Other {
        metadata: ObjectMeta,
    }

    informer_factory::group! {
        pub(super) trait OtherInformers {
            fn other() -> OtherGroup {
                fn v1() -> OtherV1 { others: Other }
            }
        }
    }

    #[derive(Debug, Clone)]
    pub(super) struct Used {
        pub(super) field: u8,
    }

    pub(super) trait AlsoUsed: Copy {}
}

/// Kinds whose names equal the generated group and version types of another kind.
mod named_like_generated_types {
    use informer_factory::Informer;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use serde::Deserialize;

    #[derive(Informer, Deserialize)]
    #[informer(group = "models.example.com", version = "v1", kind = "Model", namespaced)]
    pub(super) struct Model {
        metadata: ObjectMeta,
    }

    #[derive(Informer, Deserialize)]
    #[informer(group = "groups.example.com", version = "v1", kind = "ModelGroup", namespaced)]
    pub(super) struct ModelGroup {
        metadata: ObjectMeta,
    }

    #[derive(Informer, Deserialize)]
    #[informer(group = "versions.example.com", version = "v1", kind = "ModelVersion", namespaced)]
    pub(super) struct ModelVersion {
        metadata: ObjectMeta,
    }
}

/// A type whose name is a raw identifier. Generated names do not contain the `r#`.
#[derive(Informer, Deserialize)]
#[informer(group = "raw.example.com", version = "v1", kind = "RawThing", namespaced)]
#[informer(index(name = "by_type", path = "type"))]
struct r#RawThing {
    metadata: ObjectMeta,
    r#type: Option<String>,
}

/// Checks at compile time that the accessors resolve. Never called, because a call would compile
/// six informers.
fn _accessors_resolve_beside_other_names(factory: &SharedInformerFactory) {
    use named_like_generated_types::{
        ModelGroupInformers as _, ModelInformers as _, ModelVersionInformers as _,
    };
    use without_a_prelude::{BareIndices as _, BareInformers as _, OtherInformers as _};
    _ = factory.models().v1().models();
    _ = factory.groups().v1().model_groups();
    _ = factory.versions().v1().model_versions();
    _ = factory.prelude().v1().bares().by_app("web");
    _ = factory.other().v1().others();
    _ = factory.raw().v1().raw_things().by_type("T");
}
