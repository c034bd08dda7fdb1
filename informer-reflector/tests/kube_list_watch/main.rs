//! `KubeListWatch` against a server in the same process: what it asks for, and what it makes of the answers.

mod bodies;
mod compression;
mod connecting;
mod errors;
mod requests;
mod server;
mod types;
