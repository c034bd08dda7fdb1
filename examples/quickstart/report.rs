//! The state of affairs: what is in the stores, what has happened so far, and how the handlers fare.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use indicatif::HumanCount;
use informer_factory::{HandlerRegistration, SharedIndexInformer};
use k8s_openapi::api::core::v1::{Node, Pod};

use crate::events::Tally;
use crate::source::Source;

/// Reports on two informers and their handlers.
pub(crate) struct Report {
    pub(crate) started: Instant,
    pub(crate) nodes: SharedIndexInformer<Node>,
    pub(crate) pods: SharedIndexInformer<Pod>,
    pub(crate) handlers: [HandlerRegistration; 2],
    pub(crate) tally: Arc<Tally>,
    /// The last block, which is not printed again while nothing changes.
    pub(crate) printed: String,
}

impl Report {
    /// Says where the objects come from.
    pub(crate) fn print_source(&self, source: &Source) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.status().description(), self.pods.status().description());
        writeln!(io::stdout(), "watching {nodes} and {pods} of {source}")
    }

    /// Says what has synced, and what has not.
    pub(crate) fn print_synced(&self) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.indexer().len(), self.pods.indexer().len());
        let seconds = self.started.elapsed().as_secs_f64();
        let line = match (self.nodes.has_synced(), self.pods.has_synced()) {
            (true, true) => {
                format!("{} pods and {} nodes", HumanCount(pods as u64), HumanCount(nodes as u64))
            }
            (true, false) => format!("{} nodes, but not yet the pods", HumanCount(nodes as u64)),
            (false, true) => format!("{} pods, but not yet the nodes", HumanCount(pods as u64)),
            (false, false) => "nothing yet".to_owned(),
        };
        writeln!(io::stdout(), "synced {line} in {seconds:.2} s")
    }

    /// Prints the state of affairs, unless nothing has changed since the last time.
    pub(crate) fn print_block(&mut self, look_up: &str) -> io::Result<()> {
        let handlers = self.handlers.each_ref().map(|handler| {
            let stats = handler.stats();
            let (delivered, pending) = (HumanCount(stats.delivered), HumanCount(stats.pending as u64));
            format!("{}: {delivered} calls, {pending} waiting, {} coalesced", handler.name(), stats.coalesced)
        });
        let block = format!(
            "    nodes     {}\n    pods      {}\n    events    {}\n    handlers  {}\n    by node   {look_up}",
            state(&self.nodes),
            state(&self.pods),
            self.events(),
            handlers.join("; "),
        );
        if block != self.printed {
            writeln!(io::stdout(), "--- {:.0} s\n{block}\n---", self.started.elapsed().as_secs_f64())?;
            self.printed = block;
        }
        Ok(())
    }

    /// Prints what there was in the end.
    pub(crate) fn print_summary(&self) -> io::Result<()> {
        let (nodes, pods) = (self.nodes.indexer().len(), self.pods.indexer().len());
        let (nodes, pods) = (HumanCount(nodes as u64), HumanCount(pods as u64));
        let seconds = self.started.elapsed().as_secs_f64();
        writeln!(io::stdout(), "stopped after {seconds:.1} s: {nodes} nodes, {pods} pods, {}", self.events())
    }

    fn events(&self) -> String {
        let count = |counter: &std::sync::atomic::AtomicU64| HumanCount(counter.load(Ordering::Relaxed));
        let Tally { added, updated, deleted, .. } = &*self.tally;
        format!("{} added, {} updated, {} deleted", count(added), count(updated), count(deleted))
    }
}

/// How many objects there are and how current they are; or what keeps them from being there.
fn state<K: Send + Sync + 'static>(informer: &SharedIndexInformer<K>) -> String {
    let health = informer.health();
    if !informer.has_synced() {
        return health.to_string();
    }
    format!("{}, {health}, watermark {}", HumanCount(informer.indexer().len() as u64), informer.watermark())
}
