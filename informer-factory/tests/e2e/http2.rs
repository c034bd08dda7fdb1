//! Informers over HTTP/2, on a server that sometimes sends GOAWAY.

use futures::StreamExt;
use futures::stream;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use informer_factory::InformerOptions;
use informer_reflector::KubeListWatch;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::Client;
use kube::api::ListParams;
use kube::client::{Body, ConfigExt};
use tower::ServiceBuilder;

use crate::cluster::{Cluster, config, create, run};
use crate::objects::{LABEL, config_map};
use crate::within;
use crate::witnesses::Witnesses;

/// Returns a client that uses only HTTP/2. kube's own client supports only HTTP/1.1.
async fn client() -> Client {
    let config = config("admin").await;
    let tls = config.rustls_client_config().expect("the TLS configuration is valid");
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http2().build();
    let http = legacy::Client::builder(TokioExecutor::new()).http2_only(true).build::<_, Body>(https);
    let user = config.auth_layer().expect("the credentials are valid");
    let service = ServiceBuilder::new().layer(config.base_uri_layer()).option_layer(user);
    Client::new(service.map_err(tower::BoxError::from).service(http), "default")
}

#[tokio::test]
#[ignore = "needs a kube-apiserver: cargo xtask e2e"]
async fn informers_survive_goaway_of_a_shared_connection() {
    let cluster = Cluster::connect("http2").await;
    let (server, client) = (cluster.api::<ConfigMap>(), client().await);
    let maps = KubeListWatch::<ConfigMap>::namespaced(client.clone(), &cluster.namespace);
    let (informer, _running) = run(maps.label_selector(LABEL), InformerOptions::new());
    let (nodes, _nodes) = run(KubeListWatch::<Node>::all(client.clone()), InformerOptions::new());
    let (pods, _pods) = run(KubeListWatch::<Pod>::all(client.clone()), InformerOptions::new());
    for synced in [informer.synced(), nodes.synced(), pods.synced()] {
        within(synced.wait()).await.expect("synced");
    }
    let witnesses = Witnesses::new(&informer, &server, ListParams::default().labels(LABEL));
    // These are enough requests on one connection to receive several GOAWAYs.
    let others = kube::Api::<ConfigMap>::namespaced(client, &cluster.namespace);
    let requests = stream::iter(0..400).map(async |number| {
        if number % 10 == 0 {
            create(&server, &config_map(&format!("map-{number}"))).await;
        }
        // A request that is sent after the GOAWAY gets no response.
        others.list_metadata(&ListParams::default().limit(1)).await.is_ok()
    });
    let answered = within(requests.buffer_unordered(8).filter(|ok| std::future::ready(*ok)).count()).await;
    assert!(answered > 300, "{answered}");
    witnesses.agree().await;
    assert_eq!(informer.indexer().len(), 40);
}
