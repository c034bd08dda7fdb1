//! Realistic names for the objects of a cluster.

use std::collections::BTreeSet;

const NAMESPACES: [&str; 16] = [
    "payments",
    "storefront",
    "search",
    "identity",
    "logistics",
    "messaging",
    "analytics",
    "monitoring",
    "pricing",
    "catalog",
    "support",
    "fraud",
    "recommendations",
    "media",
    "partners",
    "platform",
];

const WORKLOADS: [&str; 24] = [
    "checkout",
    "gateway",
    "worker",
    "api",
    "ledger",
    "scheduler",
    "notifier",
    "sessions",
    "exporter",
    "indexer",
    "invoices",
    "cart",
    "refunds",
    "ranking",
    "inventory",
    "webhooks",
    "audit",
    "profiles",
    "importer",
    "tracking",
    "cache-warmer",
    "rates",
    "archiver",
    "frontend",
];

/// The characters of names that the server generates.
const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(super) fn namespace(index: usize) -> String {
    numbered(NAMESPACES[index % NAMESPACES.len()], index / NAMESPACES.len())
}

/// Draws the random part of a generated name.
pub(super) fn suffix(random: &mut fastrand::Rng, length: usize) -> String {
    (0..length).filter_map(|_| random.choice(CHARACTERS)).map(|byte| char::from(*byte)).collect()
}

/// The workload names in use, with their namespaces.
#[derive(Debug, Default)]
pub(super) struct Names {
    used: BTreeSet<(String, String)>,
}

impl Names {
    /// Draws a workload name that is unused in the namespace.
    pub(super) fn workload(&mut self, namespace: &str, random: &mut fastrand::Rng) -> String {
        let base = WORKLOADS[random.usize(..WORKLOADS.len())];
        let mut round = 0;
        loop {
            let name = numbered(base, round);
            if self.used.insert((namespace.to_owned(), name.clone())) {
                return name;
            }
            round += 1;
        }
    }
}

fn numbered(base: &str, round: usize) -> String {
    if round == 0 { base.to_owned() } else { format!("{base}-{}", round + 1) }
}
