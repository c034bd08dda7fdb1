//! Factories of a changing set of namespaces: a change applies to all informers of the factory.

use std::sync::Arc;

use futures::StreamExt;
use informer_factory::__private::resource_of;
use informer_factory::namespaces::NamespaceError;
use informer_factory::{
    Event, HandlerOptions, Informer, InformerOptions, SharedIndexInformer, SharedInformerFactory,
};
use informer_reflector::KubeListWatch;
use informer_testing::{CannedResponse, RequestFilter, Simulator};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::GroupVersionResource;
use serde::Deserialize;
use serde_json::json;

use crate::log::Log;
use crate::{builder, factory, keys, synced, watches, with_pods, within};

#[derive(Informer, Deserialize)]
#[informer(group = "", version = "v1", kind = "Pod", namespaced)]
#[informer(index(name = "by_app", path = "metadata.labels[\"app\"]"))]
struct PodApp {
    metadata: ObjectMeta,
}

fn of_namespaces(simulator: &Simulator, namespaces: &[&str]) -> SharedInformerFactory {
    builder(simulator).namespaces(namespaces.iter().copied()).expect("valid names").build()
}

async fn added(factory: &SharedInformerFactory, namespace: &str) {
    for completion in factory.add_namespace(namespace).expect("the factory has a set of namespaces") {
        within(completion.wait()).await.expect("synced");
    }
}

async fn removed(factory: &SharedInformerFactory, namespace: &str) {
    for completion in factory.remove_namespace(namespace).expect("the factory has a set of namespaces") {
        within(completion.wait()).await.expect("no panic");
    }
}

#[tokio::test(start_paused = true)]
async fn every_form_watches_the_factorys_namespaces() {
    let simulator = with_pods();
    simulator
        .create(&json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } }))
        .expect("a new node");
    let factory = of_namespaces(&simulator, &["shop"]);
    let (pods, nodes) = (factory.core().v1().pods(), factory.core().v1().nodes());
    let apps = factory.core().v1().pod_apps();
    let metadata = factory.metadata().of::<Pod>();
    let resource = GroupVersionResource::gvr("", "v1", "pods");
    let dynamic = factory.for_resource(&resource).await.expect("pods are served");
    synced(&factory).await;
    let of_shop = ["shop/db", "shop/web"];
    assert_eq!(keys(&pods), of_shop);
    assert_eq!((keys(&apps), keys(&metadata), keys(&dynamic)), (keys(&pods), keys(&pods), keys(&pods)));
    assert_eq!(apps.by_app("web").len(), 1);
    assert_eq!(keys(&nodes), ["n"], "cluster-scoped objects are not affected");
    assert_eq!(simulator.open_watches(&watches()), 5);

    added(&factory, "else").await;
    assert_eq!(factory.namespaces(), ["else", "shop"]);
    for keys in [keys(&pods), keys(&apps), keys(&metadata), keys(&dynamic)] {
        assert_eq!(keys, ["else/web", "shop/db", "shop/web"]);
    }
    assert_eq!(apps.by_app("web").len(), 2);
    removed(&factory, "shop").await;
    for keys in [keys(&pods), keys(&apps), keys(&metadata), keys(&dynamic)] {
        assert_eq!(keys, ["else/web"]);
    }
    assert_eq!(keys(&nodes), ["n"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn description_has_name_form_and_selectors() {
    let simulator = with_pods();
    let named = builder(&simulator).name("scheduler").namespaces([""; 0]).expect("no names").build();
    let (pods, metadata) = (named.core().v1().pods(), named.metadata().of::<Pod>());
    let web = named.with_labels("app=web").core().v1().pods();
    let descriptions: Vec<_> = named.informers().into_iter().map(|it| it.description).collect();
    let expected = ["scheduler/metadata of pods", "scheduler/pods", "scheduler/pods with labels \"app=web\""];
    assert_eq!(descriptions, expected);
    // The inspector decides by the resource whether objects are Secrets.
    assert_eq!((resource_of(&pods), resource_of(&metadata), resource_of(&web)), ("pods", "pods", "pods"));

    let client = simulator.client().expect("a client");
    let make = move |namespace: &str| {
        let source = KubeListWatch::<Pod>::namespaced(client.clone(), namespace).name("scheduler");
        Arc::new(source.label_selector("app=web")) as Arc<_>
    };
    let made = SharedIndexInformer::<Pod>::new_in_namespaces(make, ["shop", "else"], InformerOptions::new());
    let (web, _task) = made.expect("valid names");
    assert_eq!(web.status().description(), "scheduler/pods with labels \"app=web\"");
}

#[tokio::test(start_paused = true)]
async fn informer_with_fixed_namespaces_is_logged_once() {
    let simulator = with_pods();
    for namespaces in [&["shop"][..], &[]] {
        let (errors, _logging) = Log::keep(tracing::Level::ERROR);
        let factory = of_namespaces(&simulator, namespaces);
        let source = Arc::new(KubeListWatch::<Pod>::all(simulator.client().expect("a client")));
        let _pods = factory.informer_with::<Pod>(|_, options| SharedIndexInformer::new(source, options));
        let lines = errors.with("cannot watch the factory's namespaces");
        assert_eq!(lines.len(), 1, "{namespaces:?}: {lines:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn later_informer_watches_the_current_namespaces() {
    let simulator = with_pods();
    let factory = of_namespaces(&simulator, &[]);
    synced(&factory).await;
    added(&factory, "shop").await;
    added(&factory, "else").await;
    removed(&factory, "shop").await;
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    assert_eq!((pods.namespaces(), keys(&pods)), (vec!["else".to_owned()], vec!["else/web".to_owned()]));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn handle_of_another_scope_ignores_added_namespaces() {
    let simulator = with_pods();
    let factory = of_namespaces(&simulator, &["else"]);
    let (all, shop) =
        (factory.in_all_namespaces().core().v1().pods(), factory.in_namespace("shop").core().v1().pods());
    let web = factory.with_labels("app=web").core().v1().pods();
    synced(&factory).await;
    assert_eq!((keys(&all).len(), keys(&shop).len(), keys(&web)), (3, 2, vec!["else/web".to_owned()]));
    added(&factory, "shop").await;
    removed(&factory, "else").await;
    assert_eq!((keys(&all).len(), keys(&shop).len(), keys(&web)), (3, 2, vec!["shop/web".to_owned()]));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_removed_namespace_are_released() {
    let simulator = with_pods();
    let factory = of_namespaces(&simulator, &["else"]);
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    let mut events = pods.events(&HandlerOptions::new());
    assert!(matches!(within(events.next()).await, Some(Event::Added { .. })));
    removed(&factory, "else").await;
    assert!(matches!(within(events.next()).await, Some(Event::Released(_))));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn fixed_factory_and_invalid_names_are_refused() {
    let simulator = with_pods();
    let fixed = factory(&simulator);
    assert_eq!(
        fixed.add_namespace("shop").expect_err("the factory has a fixed scope"),
        NamespaceError::FixedFactory
    );
    assert_eq!(
        fixed.remove_namespace("shop").expect_err("the factory has a fixed scope"),
        NamespaceError::FixedFactory
    );
    assert!(fixed.namespaces().is_empty());
    let invalid = NamespaceError::InvalidName { name: "Shop!".to_owned() };
    assert_eq!(builder(&simulator).namespaces(["Shop!"]).expect_err("an invalid name"), invalid);
    let factory = of_namespaces(&simulator, &["shop"]);
    assert_eq!(factory.add_namespace("Shop!").expect_err("an invalid name"), invalid);
    assert_eq!(factory.namespaces(), ["shop"]);
    // A cluster-scoped resource has no namespaces to add.
    let nodes = factory.informer::<Node>();
    assert!(matches!(nodes.add_namespace("shop"), Err(NamespaceError::Fixed { .. })));
}

#[tokio::test(start_paused = true)]
async fn second_add_or_remove_waits_like_the_first() {
    let simulator = with_pods();
    let factory = of_namespaces(&simulator, &[]);
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    for (namespaces, left) in [(&["shop"][..], vec!["shop/db", "shop/web"]), (&[], vec![])] {
        let change = || match namespaces {
            [] => factory.remove_namespace("shop").expect("the factory has a set of namespaces"),
            _ => factory.add_namespace("shop").expect("the factory has a set of namespaces"),
        };
        let (first, second) = (change(), change());
        assert_eq!((first.len(), second.len()), (1, 1), "one completion per informer");
        assert!(!second[0].has_synced());
        within(second[0].wait()).await.expect("the informer runs");
        assert_eq!(
            (pods.namespaces(), keys(&pods)),
            (
                namespaces.iter().map(ToString::to_string).collect(),
                left.into_iter().map(str::to_owned).collect()
            )
        );
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn factory_syncs_without_refused_namespace_and_names_it() {
    let simulator = with_pods();
    let refused = CannedResponse::failure(http::StatusCode::FORBIDDEN, "Forbidden", "because");
    let in_else = RequestFilter::any().path("/api/v1/namespaces/else/pods");
    simulator.fail_next(usize::MAX, in_else, refused);
    let factory = of_namespaces(&simulator, &["shop", "else"]);
    let pods = factory.core().v1().pods();
    synced(&factory).await;
    assert_eq!(keys(&pods), ["shop/db", "shop/web"]);
    let report = factory.informers()[0].to_string();
    assert!(report.starts_with("pods (synced, except namespace \"else\": forbidden"), "{report}");
    factory.shutdown().await;
}
