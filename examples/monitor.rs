//! Health endpoints, Prometheus metrics and the inspector of a controller: `/healthz`, `/readyz`, `/metrics` and
//! `/inspect/`.
//!
//! ```text
//! cargo run --example monitor
//! ```

mod server;

use std::error::Error;

use informer_factory::SharedInformerFactory;
use informer_monitor::{Inspector, QueueMetrics, router};
use informer_workqueue::Workqueue;
use k8s_openapi::api::core::v1::ConfigMap;
use prometheus_client::registry::Registry;
use serde_json::json;
use server::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::start().await?;
    let factory = SharedInformerFactory::new(server.client.clone());
    let maps = factory.in_namespace(&server.namespace).core().v1().config_maps();

    // A work queue with metrics, like the queue of a controller.
    let metrics = QueueMetrics::new();
    let queue = Workqueue::builder().name("example-maps").metrics(metrics.clone()).build();
    metrics.follow(&queue);
    let adder = queue.clone();
    let handler = maps.add_handlers(|handlers| handlers.on_add(move |map, _| adder.add(map.key().clone())));

    let mut registry = Registry::default();
    registry.register_collector(Box::new(metrics));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // The inspector shows objects, so a reader needs the token: http://ADDRESS/inspect/?token=TOKEN
    let inspector =
        Inspector::new(&factory).objects(&maps).token("a-secret-of-this-process").into_router()?;
    let router = router(&factory, registry).merge(inspector);
    let endpoints = tokio::spawn(async move { axum::serve(listener, router).await });

    // Before the start, the program is not ready: the response names the informer and the reason.
    let response = get(address, "/readyz").await?;
    assert!(response.contains("503 Service Unavailable") && response.contains("(not started)"), "{response}");

    factory.start();
    factory.wait_for_cache_sync().await?;
    let created = server.create::<ConfigMap>(json!({ "metadata": { "name": "apple" } })).await?;
    while let Some(item) = queue.get().await {
        let is_last = Some(item.key().name()) == created.metadata.name.as_deref();
        item.done();
        if is_last {
            break;
        }
    }
    assert!(get(address, "/readyz").await?.contains("200 OK"));
    let page = get(address, "/metrics").await?;
    for line in page.lines().filter(|line| line.contains("config") || line.contains("example-maps")) {
        println!("{line}");
    }
    assert!(
        page.contains("informer_synced{") && page.contains("workqueue_adds_total{name=\"example-maps\"}")
    );

    assert!(get(address, "/inspect/").await?.contains("401 Unauthorized"));
    assert!(
        get(address, "/inspect/?token=a-secret-of-this-process").await?.contains("<title>Informers</title>")
    );

    factory.shutdown().await;
    endpoints.abort();
    // The result is an error, because the task was aborted.
    _ = endpoints.await;
    drop((handler, maps, factory));
    server.shutdown().await
}

/// Sends a GET request and returns the response with its headers, as `curl -i` does.
async fn get(address: std::net::SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}
