//! The body of a list or watch, read by `KubeListWatch`. A body in any number of gzip members gives
//! the same result as the plain body. Reading never hangs, even if the body is invalid.
#![no_main]

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::TryStreamExt;
use http_body_util::StreamBody;
use informer_core::{ListOptions, ListWatchError, ListerWatcher, WatchOptions};
use informer_fuzz::{event_text, item_text, split};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::core::{ApiResource, DynamicObject};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&how, input)) = input.split_first() else { return };
    let Some((_, pieces)) = split(input) else { return };
    let is_watch = how & 1 == 1;
    let pieces: Vec<_> = pieces.into_iter().map(Bytes::copy_from_slice).collect();
    if how & 2 == 2 {
        // Reading must end for any input.
        drop(read(is_watch, "gzip", pieces));
        return;
    }
    let members: Vec<_> = pieces.iter().map(|piece| gzip(piece)).collect();
    let plain = read(is_watch, "identity", pieces);
    let compressed = read(is_watch, "gzip", members);
    match (plain, compressed) {
        (Ok(plain), Ok(compressed)) => assert_eq!(plain, compressed),
        (Err(_), Err(_)) => {}
        (plain, compressed) => {
            panic!("a body is valid in only one of two encodings: plain {plain:?}, compressed {compressed:?}")
        }
    }
});

fn gzip(piece: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(piece).expect("a write to memory");
    encoder.finish().expect("a write to memory").into()
}

/// Returns the items or events of a response whose body consists of `pieces`, as text.
fn read(is_watch: bool, encoding: &'static str, pieces: Vec<Bytes>) -> Result<String, ListWatchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
            let frames = pieces
                .clone()
                .into_iter()
                .map(|piece| Ok::<_, std::io::Error>(http_body::Frame::data(piece)));
            let body = StreamBody::new(futures::stream::iter(frames));
            let response = http::Response::builder().header("content-encoding", encoding).body(body);
            std::future::ready(Ok::<_, std::io::Error>(response.expect("a response")))
        });
        let resource = ApiResource::erase::<Pod>(&());
        let pods = KubeListWatch::<DynamicObject>::all_with(Client::new(service, "default"), &resource);
        if is_watch {
            let options = WatchOptions {
                resource_version: "1".into(),
                timeout: std::time::Duration::from_secs(300),
                allow_bookmarks: true,
                send_initial_events: false,
            };
            let batches: Vec<_> = pods.watch(options).await?.try_collect().await?;
            Ok(format!("{:?}", batches.iter().flatten().map(event_text).collect::<Vec<_>>()))
        } else {
            let parts: Vec<_> = pods.list(ListOptions::default()).await?.try_collect().await?;
            // The boundaries of parts depend on the pieces of the input.
            let (mut items, mut end) = (Vec::new(), None);
            for part in parts {
                match part {
                    informer_core::ListPart::Items(more) => items.extend(more.into_iter().map(item_text)),
                    informer_core::ListPart::End(last) => end = Some(last),
                }
            }
            Ok(format!("{items:?} {end:?}"))
        }
    })
}
