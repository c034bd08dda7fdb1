//! Takes the screenshots in the documentation, which show a simulated cluster that changes
//! all the time.
//!
//! Without the variable `INFORMER_SCREENSHOTS`, the test only checks that the page draws its plots.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use informer_testing::{ClusterSpec, Simulator};
use tokio::sync::oneshot;

use super::webdriver::Browser;
use super::world::World;
use super::{NARROW, open, open_informer};

/// Waits until the plots on the page have `count` values. The page adds one value per second.
async fn wait_for_values(browser: &Browser, count: usize) {
    let path = "document.querySelector('#tiles .line').getAttribute('d')";
    // There are several waits, because one wait for all values could exceed the time limit of `until`.
    for part in (0..count).step_by(10).chain([count]) {
        browser.until(&format!("{path}.split('L').length >= {part}")).await;
    }
}

async fn save(browser: &Browser, name: &str) {
    if std::env::var_os("INFORMER_SCREENSHOTS").is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/src/images");
    std::fs::create_dir_all(&folder).expect("a folder");
    let picture = STANDARD.decode(browser.screenshot().await).expect("base64");
    std::fs::write(folder.join(name), picture).expect("a writable folder");
}

#[tokio::test]
async fn plots_move_while_the_cluster_changes() {
    let simulator = Simulator::builder().built_in_kinds().start().await.expect("a free port");
    let spec = ClusterSpec { nodes: 20, pods: 1_000, namespaces: 8, ..ClusterSpec::default() };
    let cluster = simulator.populate(&spec).expect("new objects");
    let (stop, stopped) = oneshot::channel::<()>();
    let churn = tokio::spawn(cluster.churn(25.0).run_until(async move { _ = stopped.await }));
    let world = World::of(simulator).await;

    let values = if std::env::var_os("INFORMER_SCREENSHOTS").is_some() { 45 } else { 4 };
    let wide = open((1280, 800), &world.url).await;
    let narrow = open(NARROW, &world.url).await;
    wait_for_values(&wide, values).await;
    save(&wide, "inspector.png").await;
    wait_for_values(&narrow, values).await;
    save(&narrow, "inspector-narrow.png").await;

    open_informer(&wide, "pods (Pod)").await;
    wide.until("document.querySelectorAll('.recent a').length > 5").await;
    // The picture shows a difference, so it needs an object that has been updated.
    wide.eval("[...document.querySelectorAll('.recent li')].find((it) => it.textContent.includes('updated')).querySelector('a').click()")
        .await;
    wide.until("document.querySelector('.changes .new') && document.querySelector('.yaml .name')").await;
    wide.eval("window.scrollTo(0, 0)").await;
    wide.prefer("dark").await;
    save(&wide, "inspector-object.png").await;
    drop((wide, narrow));
    drop(stop);
    churn.await.expect("no panic").expect("writable");
    world.stop().await;
}
