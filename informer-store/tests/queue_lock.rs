//! The queue does not hold its lock while objects are dropped during a scan of the store (I8).

use std::sync::mpsc;
use std::time::Duration;

use informer_core::{Cached, DeltaFifo, KnownObjects, ObjectKey, ReflectorStore, Replacement, Uid};
use informer_store::{Indexer, StoreWriter, store};
use parking_lot::Mutex;

/// An object that queries the queue when it is dropped.
struct QueueUser(Option<(DeltaFifo<QueueUser>, mpsc::Sender<bool>)>);

impl Drop for QueueUser {
    fn drop(&mut self) {
        if let Some((queue, answers)) = self.0.take() {
            let (send, answered) = mpsc::channel();
            std::thread::spawn(move || send.send(queue.len()));
            _ = answers.send(answered.recv_timeout(Duration::from_secs(20)).is_ok());
        }
    }
}

/// A store that changes while the queue scans it, because the queue's consumer can write at any time.
struct Written {
    indexer: Indexer<QueueUser>,
    meanwhile: Mutex<Option<(StoreWriter<QueueUser>, Cached<QueueUser>)>>,
}

impl KnownObjects<QueueUser> for Written {
    fn known(&self, key: &ObjectKey) -> Option<Cached<QueueUser>> {
        self.indexer.get(key)
    }

    fn for_each_known(
        &self,
        visit: &mut dyn FnMut(&Cached<QueueUser>),
    ) -> Option<Box<dyn std::any::Any + Send>> {
        self.indexer.for_each_known(&mut |object| {
            let meanwhile = self.meanwhile.lock().take();
            meanwhile.into_iter().for_each(|(mut writer, newer)| _ = writer.put(newer));
            visit(object);
        })
    }
}

#[test]
fn i8_objects_changed_during_a_scan_drop_without_lock() {
    let (mut writer, indexer) = store();
    let object = |version: u64, queue_user| {
        Cached::from_parts(
            ObjectKey::cluster_scoped("a"),
            version.into(),
            Uid::default(),
            QueueUser(queue_user),
        )
    };
    let known = std::sync::Arc::new(Written { indexer, meanwhile: Mutex::new(None) });
    let queue = DeltaFifo::with_known_objects(known.clone());
    let (answers, answered) = mpsc::channel();
    writer.put(object(1, Some((queue.clone(), answers))));
    *known.meanwhile.lock() = Some((writer, object(2, None)));
    queue.replace(Replacement {
        objects: vec![object(3, None)],
        quarantined: Vec::new(),
        complete: true,
        resource_version: 3.into(),
    });
    assert_eq!(answered.recv_timeout(Duration::from_secs(60)), Ok(true), "the queue was locked");
}
