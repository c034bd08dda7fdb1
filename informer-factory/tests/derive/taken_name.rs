//! A derived index whose name is already registered.

use std::sync::Arc;

use informer_factory::SharedIndexInformer;
use informer_testing::Simulator;
use tracing::Level;

use crate::custom_resource::{CronTab, CronTabIndices, CronTabInformers, create};
use crate::log::Log;
use crate::{names, start, synced};

#[tokio::test]
async fn index_with_taken_name_gets_a_longer_one() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let (log, _logging) = Log::keep(Level::ERROR);
    let made = factory.informer_with::<CronTab>(|list_watch, options| {
        let (informer, task) = SharedIndexInformer::new(Arc::new(list_watch), options);
        informer.add_index("by_image", |tab: &CronTab| [tab.spec.image.len()]).expect("a free index name");
        (informer, task)
    });
    let cron_tabs = factory.stable().v1().cron_tabs();
    synced(&factory).await;
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a", "b"]);
    assert_eq!(cron_tabs.by_image_index().count("redis"), 1);
    assert_eq!(names(&made.by_image("redis")), ["c"]);
    let theirs = made.index::<usize>("by_image").expect("the user's index is kept");
    assert_eq!(names(&theirs.get(&5)), ["a", "b", "c"]);
    let (longer, expected) = ("by_image of alloc::string::String", ["namespace", "by_image"]);
    assert_eq!(made.indexer().index_names(), [&expected[..], &[longer, "by_owner"]].concat());
    let lines = log.with("ERROR");
    let [line] = lines.as_slice() else { panic!("the conflict must be logged once: {lines:?}") };
    assert!(line.contains("crontabs") && line.contains("by_image") && line.contains(longer), "{line}");
    // If the longer name is taken, too, the derived index is registered under a still longer name.
    made.indexer().remove_index(longer).expect("the index exists");
    made.add_index(longer, |_: &CronTab| [1_u8]).expect("a free index name");
    assert_eq!(names(&cron_tabs.by_image("redis")), ["c"]);
    factory.shutdown().await;
}
