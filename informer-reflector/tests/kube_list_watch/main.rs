//! `KubeListWatch` with a server in the same process: its requests, and how it treats responses.

mod bodies;
mod compression;
mod connecting;
mod errors;
mod requests;
mod server;
mod types;
