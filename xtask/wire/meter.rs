//! [`Meter`]: counts the events of all handlers, and records the times of the first handler's
//! events.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use tokio::sync::Notify;

use crate::protocol::{Plan, now};

#[derive(Debug)]
pub(crate) struct Meter {
    last_pass: u64,
    received: AtomicUsize,
    /// How many final states the handlers have not received yet. Each handler receives one final
    /// state of each object.
    missing: AtomicUsize,
    /// The resource version and the time of each event of the first handler; `None` if times are
    /// not recorded.
    times: Option<Mutex<Vec<(u64, u64)>>>,
    done: Notify,
}

impl Meter {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            last_pass: plan.last_pass,
            received: AtomicUsize::new(0),
            missing: AtomicUsize::new(plan.objects * plan.handlers),
            times: plan.times.is_some().then(Mutex::default),
            done: Notify::new(),
        }
    }

    /// Counts an event of a handler. `version` is the object's resource version.
    pub(crate) fn observe(&self, handler: usize, version: u64) {
        self.received.fetch_add(1, Ordering::Relaxed);
        if let Some(times) = self.times.as_ref().filter(|_| handler == 0)
            && let Ok(mut times) = times.lock()
        {
            times.push((version, now()));
        }
        if version >= self.last_pass && self.missing.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.done.notify_one();
        }
    }

    /// Waits until all handlers have received the final state of each object. Returns the number of
    /// events of all handlers. Without handlers or objects, this never returns.
    pub(crate) async fn done(&self) -> usize {
        self.done.notified().await;
        self.received.load(Ordering::Relaxed)
    }

    /// Writes the resource version and the time in nanoseconds of each event of the first handler
    /// to `plan.times`, as little-endian numbers of eight bytes.
    pub(crate) fn write_times(&self, plan: &Plan) -> anyhow::Result<()> {
        let (Some(times), Some(path)) = (&self.times, &plan.times) else {
            return Ok(());
        };
        let times = times.lock().ok().context("a handler panicked")?;
        let file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = std::io::BufWriter::new(file);
        for (version, time) in times.iter() {
            file.write_all(&version.to_le_bytes())?;
            file.write_all(&time.to_le_bytes())?;
        }
        file.flush().with_context(|| format!("cannot write {}", path.display()))
    }
}
