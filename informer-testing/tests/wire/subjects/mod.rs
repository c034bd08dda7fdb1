//! The scenarios, a file per subject. Rows come in the order in which the table shows them.

mod creating;
mod deleting;
mod events;
mod field_selectors;
mod forms;
mod label_selectors;
mod leases;
mod list_options;
mod lists;
mod namespaces;
mod owners;
mod paging;
mod patching;
mod paths;
mod streaming_lists;
mod subresources;
mod updating;
mod versions;
mod watch_options;
mod watches;

use crate::scenario::Scenario;

/// All rows, by subject.
pub(crate) fn all() -> Vec<Vec<Scenario>> {
    vec![
        list_options::scenarios(),
        lists::scenarios(),
        versions::scenarios(),
        paging::scenarios(),
        watch_options::scenarios(),
        watches::scenarios(),
        streaming_lists::scenarios(),
        label_selectors::scenarios(),
        field_selectors::scenarios(),
        creating::scenarios(),
        updating::scenarios(),
        patching::scenarios(),
        deleting::scenarios(),
        subresources::scenarios(),
        owners::scenarios(),
        namespaces::scenarios(),
        leases::scenarios(),
        events::scenarios(),
        forms::scenarios(),
        paths::scenarios(),
    ]
}
