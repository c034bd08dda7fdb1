//! A derived index whose name another index already has.

use std::fmt;
use std::sync::{Arc, Mutex};

use informer_factory::SharedIndexInformer;
use informer_testing::Simulator;
use tracing::field::Field;

use crate::custom_resource::{CronTab, CronTabIndices, CronTabInformers, create};
use crate::{names, start, synced};

/// Collects error lines with their fields.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::ERROR && metadata.target().starts_with("informer_factory")
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        self.lines.lock().expect("no panic").push(String::new());
        event.record(&mut &*self);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

impl tracing::field::Visit for &Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if let Some(line) = self.lines.lock().expect("no panic").last_mut() {
            line.push_str(&format!(" {}={value:?}", field.name()));
        }
    }
}

#[tokio::test]
async fn index_with_taken_name_gets_a_longer_one() {
    let (simulator, factory) = start(Simulator::builder().resource_of::<CronTab>()).await;
    create(&simulator);
    let log = Log::default();
    let _logging = tracing::subscriber::set_default(log.clone());
    let made = factory.informer_with::<CronTab>(|list_watch, options| {
        let (informer, task) = SharedIndexInformer::new(Arc::new(list_watch), options);
        informer.add_index("by_image", |tab: &CronTab| [tab.spec.image.len()]).expect("a free name");
        (informer, task)
    });
    let cron_tabs = factory.stable().v1().cron_tabs();
    synced(&factory).await;
    assert_eq!(names(&cron_tabs.by_image("nginx")), ["a", "b"]);
    assert_eq!(cron_tabs.by_image_index().count("redis"), 1);
    assert_eq!(names(&made.by_image("redis")), ["c"]);
    let theirs = made.index::<usize>("by_image").expect("it stays");
    assert_eq!(names(&theirs.get(&5)), ["a", "b", "c"]);
    let (longer, expected) = ("by_image of alloc::string::String", ["namespace", "by_image"]);
    assert_eq!(made.indexer().index_names(), [&expected[..], &[longer, "by_owner"]].concat());
    let lines = log.lines.lock().expect("no panic").clone();
    let [line] = lines.as_slice() else { panic!("it is logged once: {lines:?}") };
    assert!(line.contains("crontabs") && line.contains("by_image") && line.contains(longer), "{line}");
    // The longer name can be taken, too.
    made.indexer().remove_index(longer).expect("it is there");
    made.add_index(longer, |_: &CronTab| [1_u8]).expect("a free name");
    assert_eq!(names(&cron_tabs.by_image("redis")), ["c"]);
    factory.shutdown().await;
}
