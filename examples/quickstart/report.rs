//! Reports on the stores, the events so far, and the handlers.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use informer_factory::{HandlerRegistration, SharedIndexInformer};
use k8s_openapi::api::core::v1::{Node, Pod};
use tokio::time::Instant;

use crate::events::Tally;
use crate::source::Source;

pub(crate) struct Report {
    pub(crate) started: Instant,
    pub(crate) nodes: SharedIndexInformer<Node>,
    pub(crate) pods: SharedIndexInformer<Pod>,
    pub(crate) handlers: [HandlerRegistration; 2],
    pub(crate) tally: Arc<Tally>,
    /// The last printed report. An equal report is not printed again.
    pub(crate) printed: String,
}

impl Report {
    pub(crate) fn print_source(&self, source: &Source) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.status().description(), self.pods.status().description());
        writeln!(io::stdout(), "watching {nodes} and {pods} of {source}")
    }

    pub(crate) fn print_synced(&self) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.indexer().len(), self.pods.indexer().len());
        let seconds = self.started.elapsed().as_secs_f64();
        writeln!(io::stdout(), "synced {pods} pods and {nodes} nodes in {seconds:.2} s")
    }

    /// Prints a report, unless it equals the last printed report. `look_up` is the text of the last
    /// line, which describes the pods of one node.
    pub(crate) fn print_block(&mut self, look_up: &str) -> io::Result<()> {
        let handlers = self.handlers.each_ref().map(|handler| {
            let stats = handler.stats();
            let (name, delivered) = (handler.name(), stats.delivered);
            format!("{name}: {delivered} calls, {} pending, {} coalesced", stats.pending, stats.coalesced)
        });
        let block = [
            format!("    nodes     {}", state(&self.nodes)),
            format!("    pods      {}", state(&self.pods)),
            format!("    events    {}", self.events()),
            format!("    handlers  {}", handlers.join("; ")),
            format!("    by node   {look_up}"),
        ]
        .join("\n");
        if block != self.printed {
            writeln!(io::stdout(), "--- after {:.0} s\n{block}", self.started.elapsed().as_secs_f64())?;
            self.printed = block;
        }
        Ok(())
    }

    pub(crate) fn print_summary(&self) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.indexer().len(), self.pods.indexer().len());
        let seconds = self.started.elapsed().as_secs_f64();
        writeln!(io::stdout(), "stopped after {seconds:.1} s: {nodes} nodes, {pods} pods, {}", self.events())
    }

    fn events(&self) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Tally { added, updated, deleted, .. } = &*self.tally;
        format!("{} added, {} updated, {} deleted", count(added), count(updated), count(deleted))
    }
}

/// Describes the state of an informer, or the reason why the informer has not synced.
fn state<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> String {
    let health = informer.health();
    if !informer.has_synced() {
        return health.to_string();
    }
    format!("{}, {health}, watermark {}", informer.indexer().len(), informer.watermark())
}
