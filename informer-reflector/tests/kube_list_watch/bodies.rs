//! Bodies of lists and watches.

use std::io;

use futures::{StreamExt, TryStreamExt};
use informer_core::{ListEnd, ListOptions, ListPart, ListWatchError, ListerWatcher, ObjectKey, WatchEvent};
use informer_reflector::{KubeListWatch, PrunePaths};
use k8s_openapi::api::core::v1::Pod;

use super::server::{Server, answer, chunked, list, list_error, watch, watch_options};

#[tokio::test]
async fn list_is_decoded_in_parts_with_malformed_items_in_place() -> Result<(), ListWatchError> {
    let server = Server::answering([chunked(
        200,
        vec![
            Ok(r#"{"kind":"PodList","metadata":{"resourceVersion":"9","continue":"next"},"ite"#),
            Ok(r#"ms":[{"metadata":{"name":"a","managedFields":[{}]}},{"metadata":{"name":"b"},"#),
            Ok(""),
            Ok(r#""spec":17},{"metadata":{"name":"c"}}]"#),
            Ok("}\n"),
        ],
    )]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let parts = list(&pods, ListOptions::default()).await?;
    let [ListPart::Items(items), ListPart::End(end)] = &parts[..] else { panic!("{parts:?}") };
    let [Ok(a), Err(b), Ok(c)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((a.metadata.name.as_deref(), c.metadata.name.as_deref()), (Some("a"), Some("c")));
    assert_eq!(a.metadata.managed_fields, None);
    assert_eq!(b.key.as_ref().map(ObjectKey::as_str), Some("b"));
    let expected = ListEnd {
        resource_version: "9".into(),
        continue_token: Some("next".into()),
        remaining_item_count: None,
    };
    assert_eq!(*end, expected);
    Ok(())
}

#[tokio::test]
async fn managed_fields_are_kept_on_request_and_other_fields_pruned() -> Result<(), Box<dyn std::error::Error>>
{
    const BODY: &str = r#"{"items":[{"metadata":{"managedFields":[{}]},"spec":{"nodeName":"n"}}]}"#;
    let server = Server::answering([answer(200, BODY), answer(200, BODY)]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    for (list_watch, kept) in [
        (pods.clone().keep_managed_fields(), true),
        (pods.prune("spec.nodeName".parse::<PrunePaths>()?), false),
    ] {
        let parts = list(&list_watch, ListOptions::default()).await?;
        let [ListPart::Items(items), ListPart::End(_)] = &parts[..] else { panic!("{parts:?}") };
        let [Ok(pod)] = &items[..] else { panic!("{items:?}") };
        assert!(pod.metadata.managed_fields.is_some());
        assert_eq!(pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()), kept);
    }
    Ok(())
}

#[tokio::test]
async fn long_list_is_delivered_before_its_body_ends() -> Result<(), ListWatchError> {
    let pad = "x".repeat(1000);
    let item = format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"nodeName":"{pad}","containers":[]}}}},"#);
    let body: &'static str = format!(r#"{{"items":[{}{{}}]}}"#, item.repeat(2000)).leak();
    let server = Server::answering([answer(200, body)]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let parts = list(&pods, ListOptions::default()).await?;
    let items: usize =
        parts.iter().map(|part| if let ListPart::Items(items) = part { items.len() } else { 0 }).sum();
    assert_eq!(items, 2001);
    assert!(parts.len() > 5, "{} parts", parts.len());
    Ok(())
}

#[tokio::test]
async fn events_of_one_watch_chunk_are_one_batch() -> Result<(), ListWatchError> {
    let server = Server::answering([chunked(
        200,
        vec![
            Ok("{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"DELETED\",\"object\":{}}\n{\"type\":"),
            Ok("\"MODIFIED\",\"object\""),
            Ok(":{}}\n"),
            Ok("\n"),
            Ok("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5\"}}}"),
        ],
    )]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let batches = watch(&pods, watch_options("1")).await?;
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1], "{batches:?}");
    assert!(
        matches!(&batches[2][0], WatchEvent::Bookmark(bookmark) if bookmark.resource_version == "5".into())
    );
    Ok(())
}

#[tokio::test]
async fn each_chunk_of_a_body_counts_as_progress() -> Result<(), ListWatchError> {
    let pieces = || vec![Ok("{\"kind\":\"PodList\","), Ok("\"items\":"), Ok("[]}")];
    let server = Server::answering([chunked(200, pieces()), chunked(200, pieces())]);
    let pods = KubeListWatch::<Pod>::all(server.client());
    let parts: Vec<_> = pods.list(ListOptions::default()).await?.try_collect().await?;
    assert_eq!(parts.len(), 3 + 1, "{parts:?}");
    let mut events = pods.watch(watch_options("1")).await?;
    assert!(matches!(events.next().await, Some(Ok(batch)) if batch.is_empty()));
    Ok(())
}

#[tokio::test]
async fn interrupted_watch_is_an_error_after_its_events() -> Result<(), ListWatchError> {
    let event = "{\"type\":\"ADDED\",\"object\":{}}\n";
    let reset = || Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection closed by peer"));
    for chunks in [vec![Ok(event), reset()], vec![Ok(event), Ok("{\"type\":\"ADDED\""), reset()]] {
        let server = Server::answering([chunked(200, chunks)]);
        let mut events = KubeListWatch::<Pod>::all(server.client()).watch(watch_options("1")).await?;
        let mut error = None;
        while let Some(batch) = events.next().await {
            error = batch.err();
        }
        let error = error.expect("an error at the end");
        assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
        assert!(error.to_string().contains("connection closed by peer"), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn truncated_body_is_an_interrupted_response() -> Result<(), ListWatchError> {
    let error = list_error(answer(200, r#"{"items":[{"metadata":{"name":"a"}}"#)).await;
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    let reset = Err(io::Error::from(io::ErrorKind::ConnectionReset));
    let error = list_error(chunked(200, vec![Ok("{"), reset])).await;
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    let server = Server::answering([answer(200, "{\"type\":\"ADDED\",\"obj")]);
    let error =
        watch(&KubeListWatch::<Pod>::all(server.client()), watch_options("1")).await.expect_err("an error");
    assert!(matches!(error, ListWatchError::Interrupted(_)), "{error}");
    Ok(())
}
