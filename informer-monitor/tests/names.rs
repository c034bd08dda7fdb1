//! Tests that the dashboard, the alerts and the guide name only metrics that the collectors write,
//! and that the guide names all of these metrics.

use std::collections::BTreeSet;

use informer_factory::SharedInformerFactory;
use informer_monitor::{InformerMetrics, QueueMetrics};
use informer_testing::Simulator;
use informer_workqueue::Workqueue;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::Value;

const DASHBOARD: &str = include_str!("../dashboard.json");
const ALERTS: &str = include_str!("../../docs/guide/src/alerts.yaml");
const PAGES: [&str; 2] =
    [include_str!("../../docs/guide/src/metrics.md"), include_str!("../../docs/guide/src/tuning.md")];

/// Names of Rust crates that look like names of metrics.
const CRATES: [&str; 8] = [
    "informer_controller",
    "informer_core",
    "informer_factory",
    "informer_monitor",
    "informer_reflector",
    "informer_store",
    "informer_testing",
    "informer_workqueue",
];

/// Returns the names of all metrics that the collectors write, without the suffixes of histograms.
async fn written() -> BTreeSet<String> {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let factory = SharedInformerFactory::new(simulator.client().expect("a client"));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(InformerMetrics::new(&factory)));
    let metrics = QueueMetrics::new();
    let queue = Workqueue::<&str>::builder().name("pods").metrics(metrics.clone()).build();
    metrics.follow(&queue);
    registry.register_collector(Box::new(metrics));
    let mut page = String::new();
    encode(&mut page, &registry).expect("a string");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| name.to_owned() + if kind == "counter" { "_total" } else { "" }).collect()
}

/// Returns the names of metrics in a text, without the suffixes of histograms.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_metric = |word: &&str| {
        let is_name = ["informer_", "reflector_", "workqueue_"].iter().any(|start| word.starts_with(start));
        is_name && !CRATES.contains(word)
    };
    let plain = |word: &str| {
        let suffix = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| word.strip_suffix(suffix));
        suffix.unwrap_or(word).to_owned()
    };
    words.filter(is_metric).map(plain).collect()
}

#[tokio::test]
async fn named_metrics_are_written_by_the_collectors() {
    let written = written().await;
    for text in [DASHBOARD, ALERTS].into_iter().chain(PAGES) {
        let unknown: Vec<_> = named(text).difference(&written).cloned().collect();
        assert!(unknown.is_empty(), "no collector writes {unknown:?}; the metrics are {written:?}");
    }
}

#[tokio::test]
async fn written_metrics_are_in_the_guide() {
    let missing: Vec<_> = written().await.difference(&named(PAGES[0])).cloned().collect();
    assert!(missing.is_empty(), "docs/guide/src/metrics.md lacks {missing:?}");
}

#[test]
fn dashboard_panel_has_title_unit_and_query() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("a list of panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or_default();
        assert!(!title.is_empty(), "a panel has no title: {panel}");
        assert!(
            ids.insert(panel["id"].as_u64().expect("an ID")),
            "the ID of the panel {title} is not unique"
        );
        if panel["type"] == "row" {
            continue;
        }
        let unit = panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default();
        assert!(!unit.is_empty(), "the panel {title} has no unit");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "the data source of the panel {title}");
        let targets = panel["targets"].as_array().expect("a list of queries");
        assert!(!targets.is_empty(), "the panel {title} has no query");
        for target in targets {
            assert!(!named(target["expr"].as_str().unwrap_or_default()).is_empty(), "{title}: {target}");
        }
    }
    assert!(panels.len() > 20, "the dashboard has only {} panels", panels.len());
}

#[test]
fn alert_has_an_expression_and_a_summary() {
    let alerts: Value = serde_saphyr::from_str(ALERTS).expect("YAML");
    let groups = alerts["groups"].as_array().expect("a list of groups");
    let rules: Vec<_> = groups.iter().filter_map(|group| group["rules"].as_array()).flatten().collect();
    assert!(!rules.is_empty(), "there are no alerts");
    for rule in rules {
        assert!(rule["alert"].is_string() && rule["labels"]["severity"].is_string(), "{rule}");
        assert!(!named(rule["expr"].as_str().unwrap_or_default()).is_empty(), "{rule}");
        assert!(rule["annotations"]["summary"].is_string(), "{rule}");
    }
}
