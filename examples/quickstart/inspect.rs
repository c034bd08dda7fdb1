//! The inspector: a web page about the informers, for the argument `--inspect`.

use std::error::Error;
use std::io::{self, Write};

use informer_factory::{SharedIndexInformer, SharedInformerFactory};
use k8s_openapi::api::core::v1::{Node, Pod};

pub(crate) async fn serve(
    port: u16,
    factory: &SharedInformerFactory,
    nodes: &SharedIndexInformer<Node>,
    pods: &SharedIndexInformer<Pod>,
) -> Result<(), Box<dyn Error>> {
    let inspector = informer_monitor::Inspector::new(factory).objects(nodes).objects(pods);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    _ = writeln!(io::stdout(), "inspector: http://{}/", listener.local_addr()?);
    tokio::spawn(inspector.serve(listener));
    Ok(())
}
