//! Compressed bodies: when the client requests them, and how it decodes them.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use futures::channel::mpsc;
use informer_core::{ListOptions, ListPart, ListWatchError, ListerWatcher, OwnedObject, Storage, WatchEvent};
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::Pod;

use super::server::{
    Answer, EMPTY_LIST, Server, answer, chunked, list, list_error, streamed, watch, watch_options,
    with_header,
};

const LIST: &str = r#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},
    {"metadata":{"name":"b"}}]}"#;

const EVENTS: [&str; 3] = [
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n",
    "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n",
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}\n",
];

/// Compresses a text into one gzip member.
fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("a write to memory");
    encoder.finish().expect("a write to memory")
}

fn gzipped(answer: Answer) -> Answer {
    with_header(answer, "content-encoding", "gzip")
}

fn gzipped_pieces(pieces: &[&[u8]]) -> Answer {
    gzipped(chunked(200, pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect()))
}

async fn names(answer: Answer) -> Result<Vec<String>, ListWatchError> {
    let pods = KubeListWatch::<Pod>::all(Server::answering([answer]).client());
    let mut names = Vec::new();
    for part in list(&pods, ListOptions::default()).await? {
        let ListPart::Items(items) = part else { continue };
        names.extend(
            items.into_iter().flatten().filter_map(|pod: OwnedObject<Pod>| pod.metadata.name.clone()),
        );
    }
    Ok(names)
}

async fn events(answer: Answer) -> Result<Vec<String>, ListWatchError> {
    let pods = KubeListWatch::<Pod>::all(Server::answering([answer]).client());
    let batches = watch(&pods, watch_options("1")).await?;
    Ok(batches.iter().flatten().map(|event: &WatchEvent<Pod>| format!("{event:?}")).collect())
}

#[tokio::test]
async fn lists_and_watches_accept_gzip_by_default() -> Result<(), ListWatchError> {
    let server = Server::answering((0..2).flat_map(|_| [answer(200, EMPTY_LIST), answer(200, "")]));
    let pods = KubeListWatch::<Pod>::all(server.client());
    for pods in [pods.clone(), pods.disable_compression()] {
        list(&pods, ListOptions::default()).await?;
        watch(&pods, watch_options("1")).await?;
    }
    let encodings = server.header("accept-encoding");
    assert_eq!(encodings.iter().flatten().collect::<Vec<_>>(), ["gzip", "gzip", "identity", "identity"]);
    Ok(())
}

#[tokio::test]
async fn received_bytes_are_counted_before_decompression() -> Result<(), ListWatchError> {
    let list_body = gzip(LIST);
    let list_answer = gzipped_pieces(&[&list_body[..7], &list_body[7..]]);
    let server = Server::answering([list_answer, answer(200, EVENTS[0])]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let received = pods.received_bytes().expect("the source counts bytes");
    let now = || received.load(Ordering::Relaxed) as usize;
    list(&pods, ListOptions::default()).await?;
    assert_eq!(now(), list_body.len());
    let encoded = pods.with_storage(Storage::Encoded).expect("the source can encode");
    encoded.watch(watch_options("1")).await?.for_each(async |_| ()).await;
    assert_eq!(now(), list_body.len() + EVENTS[0].len(), "the encoded source has the same counter");
    assert_eq!(pods.clone().received_bytes().map(|bytes| bytes.load(Ordering::Relaxed)), Some(0));
    Ok(())
}

#[tokio::test]
async fn compressed_list_decodes_equally_at_every_split() -> Result<(), ListWatchError> {
    let body = gzip(LIST);
    for at in 0..body.len() {
        let (front, back) = body.split_at(at);
        assert_eq!(names(gzipped_pieces(&[front, back])).await?, ["a", "b"], "split at {at}");
    }
    let bytes: Vec<_> = body.chunks(1).collect();
    assert_eq!(names(gzipped_pieces(&bytes)).await?, ["a", "b"]);
    Ok(())
}

#[tokio::test]
async fn gzip_members_decode_equally_at_every_split() -> Result<(), ListWatchError> {
    // Members also end within lines, because the server ends a member at each flush, not at each event.
    let text = EVENTS.concat();
    let plain = events(answer(200, text.clone().leak())).await?;
    for seam in [1, 40, EVENTS[0].len(), EVENTS[0].len() + 1] {
        let members = [gzip(&text[..seam]), gzip(""), gzip(&text[seam..])].concat();
        for at in 0..members.len() {
            let (front, back) = members.split_at(at);
            assert_eq!(events(gzipped_pieces(&[front, back])).await?, plain, "seam {seam}, split at {at}");
        }
    }
    let list = [gzip(&LIST[..50]), gzip(&LIST[50..])].concat();
    assert_eq!(names(gzipped_pieces(&[&list])).await?, ["a", "b"]);
    Ok(())
}

#[tokio::test]
async fn flushed_events_are_returned_before_more_arrive() -> Result<(), ListWatchError> {
    let members: Vec<_> = EVENTS.iter().map(|event| gzip(event)).collect();
    // A server can also end each event with a sync flush, instead of a new gzip member.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut flushed = Vec::new();
    for event in EVENTS {
        encoder.write_all(event.as_bytes()).expect("a write to memory");
        encoder.flush().expect("a write to memory");
        flushed.push(std::mem::take(encoder.get_mut()));
    }
    for pieces in [members, flushed] {
        let (sender, body) = mpsc::unbounded();
        let server = Server::answering([gzipped(streamed(200, body))]);
        let mut batches = KubeListWatch::<Pod>::all(server.client()).watch(watch_options("1")).await?;
        for piece in pieces {
            sender.unbounded_send(Ok(piece.into())).expect("the receiver is open");
            let batch = batches.next().await.expect("a batch")?;
            assert_eq!(batch.len(), 1);
        }
    }
    Ok(())
}

#[tokio::test]
async fn truncated_compressed_body_is_an_interrupted_response() {
    let body = gzip(LIST);
    for end in 0..body.len() {
        let error = names(gzipped_pieces(&[&body[..end]])).await.expect_err("an early end");
        assert!(matches!(error, ListWatchError::Interrupted(_)), "{error} at {end}");
    }
    let members = EVENTS.map(gzip);
    let whole = members.concat();
    for end in 0..=whole.len() {
        let cut = events(gzipped_pieces(&[&whole[..end]])).await;
        let is_between = (0..=3).any(|count| members[..count].concat().len() == end);
        match cut {
            Ok(_) => assert!(is_between, "at {end}"),
            Err(error) => {
                assert!(!is_between && matches!(error, ListWatchError::Interrupted(_)), "{error} at {end}");
            }
        }
    }
}

#[tokio::test]
async fn body_that_is_no_gzip_is_an_error_with_the_encoding() {
    let mut flipped = gzip(LIST);
    let checksum = flipped.len() - 6;
    flipped[checksum] ^= 1;
    let trailing = [gzip(LIST), b"hunter2 hunter2".to_vec()].concat();
    for body in [LIST.as_bytes(), &flipped, &trailing, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]] {
        let error = names(gzipped_pieces(&[body])).await.expect_err("garbage");
        assert!(matches!(error, ListWatchError::Protocol(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("is not valid gzip") && text.contains("encoding gzip"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn unrequested_encoding_is_refused() {
    let error = list_error(with_header(answer(200, "\u{1}\u{2}"), "content-encoding", "br")).await;
    let text = error.to_string();
    assert!(text.contains("not requested") && text.contains("encoding br"), "{text}");
    for encoding in ["identity", ""] {
        let names = names(with_header(answer(200, LIST), "content-encoding", encoding)).await;
        assert_eq!(names.expect(encoding), ["a", "b"]);
    }
}

#[tokio::test]
async fn compressed_status_is_decoded() {
    let status = r#"{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden","code":403}"#;
    let error = list_error(gzipped(chunked(403, vec![Ok(gzip(status))]))).await;
    assert!(error.is_forbidden() && error.to_string().contains("no"), "{error}");
    let unreadable = with_header(answer(503, "\u{1}\u{2}"), "content-encoding", "br");
    assert_eq!(list_error(unreadable).await.status().map(|status| status.code), Some(503));
}

#[tokio::test]
async fn compressed_line_above_the_size_limit_is_refused() {
    // 17 MiB in one line compress to less than 1 MB, but exceed the size limit of an event.
    let member = gzip(&" ".repeat(1024 * 1024));
    let bomb = Bytes::from([gzip("{"), member.repeat(17)].concat());
    assert!(bomb.len() < 1_000_000, "{} bytes", bomb.len());
    let pods = KubeListWatch::<Pod>::all(Server::answering([gzipped(chunked(200, vec![Ok(bomb)]))]).client());
    let error = watch(&pods, watch_options("1")).await.expect_err("a size error");
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[tokio::test]
async fn decompressing_client_receives_compressed_lists() -> Result<(), ListWatchError> {
    let server = Server::answering([gzipped(chunked(200, vec![Ok(gzip(LIST))]))]);
    let pods = KubeListWatch::<Pod>::all(server.decompressing_client());
    assert_eq!(list(&pods, ListOptions::default()).await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn watch_of_a_decompressing_client_is_requested_plain() -> Result<(), ListWatchError> {
    let members = || gzipped(chunked(200, EVENTS.map(|event| Ok(gzip(event))).into()));
    let plain = || answer(200, EVENTS.concat().leak());
    let varied = with_header(members(), "vary", "Accept-Encoding");
    let server = Server::answering([varied, plain(), plain()]);
    let pods = KubeListWatch::<Pod>::all(server.decompressing_client());
    for _ in 0..2 {
        assert_eq!(watch(&pods, watch_options("1")).await?.iter().map(Vec::len).sum::<usize>(), 3);
    }
    let encodings = server.header("accept-encoding");
    assert_eq!(encodings.iter().flatten().collect::<Vec<_>>(), ["gzip", "identity", "identity"]);

    // If the response has no `vary` header, `KubeListWatch` does not notice that the client
    // decompresses responses until a watch fails.
    let server = Server::answering([members(), plain()]);
    let pods = KubeListWatch::<Pod>::all(server.decompressing_client());
    let error = watch(&pods, watch_options("1")).await.expect_err("only one member is read");
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    assert_eq!(watch(&pods, watch_options("1")).await?.iter().map(Vec::len).sum::<usize>(), 3);
    let encodings = server.header("accept-encoding");
    assert_eq!(encodings.iter().flatten().collect::<Vec<_>>(), ["gzip", "identity"]);
    Ok(())
}

#[tokio::test]
async fn connection_reset_does_not_disable_gzip() -> Result<(), ListWatchError> {
    let reset = Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection closed by peer"));
    let server = Server::answering([chunked(200, vec![Ok(EVENTS[0]), reset]), answer(200, "")]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    watch(&pods, watch_options("1")).await.expect_err("a reset");
    watch(&pods, watch_options("1")).await?;
    let encodings = server.header("accept-encoding");
    assert_eq!(encodings.iter().flatten().collect::<Vec<_>>(), ["gzip", "gzip"]);
    Ok(())
}
