//! The scenarios, one file per subject. `all` returns the subjects in the order of the table in
//! `docs/wire-scenarios.md`.

mod applying;
mod cbor;
mod compression;
mod creating;
mod custom_resources;
mod definitions;
mod deleting;
mod discovery;
mod events;
mod evictions;
mod field_selectors;
mod forms;
mod garbage;
mod http2;
mod label_selectors;
mod leases;
mod list_options;
mod lists;
mod namespaces;
mod no_streaming_lists;
mod owners;
mod paging;
mod patching;
mod paths;
mod pretty;
mod protobuf;
mod scaling;
mod server_failures;
mod streaming_lists;
mod subresources;
mod tables;
mod unready_caches;
mod updating;
mod versions;
mod watch_options;
mod watches;
mod websockets;

use crate::scenario::Scenario;

pub(crate) fn all() -> Vec<Vec<Scenario>> {
    vec![
        list_options::scenarios(),
        lists::scenarios(),
        versions::scenarios(),
        paging::scenarios(),
        watch_options::scenarios(),
        watches::scenarios(),
        streaming_lists::scenarios(),
        no_streaming_lists::scenarios(),
        label_selectors::scenarios(),
        field_selectors::scenarios(),
        creating::scenarios(),
        updating::scenarios(),
        patching::scenarios(),
        deleting::scenarios(),
        applying::scenarios(),
        subresources::scenarios(),
        evictions::scenarios(),
        scaling::scenarios(),
        owners::scenarios(),
        garbage::scenarios(),
        namespaces::scenarios(),
        leases::scenarios(),
        events::scenarios(),
        definitions::scenarios(),
        custom_resources::scenarios(),
        forms::scenarios(),
        protobuf::scenarios(),
        cbor::scenarios(),
        websockets::scenarios(),
        tables::scenarios(),
        pretty::scenarios(),
        compression::scenarios(),
        discovery::scenarios(),
        paths::scenarios(),
        http2::scenarios(),
        unready_caches::scenarios(),
        server_failures::scenarios(),
    ]
}
