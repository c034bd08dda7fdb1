//! The reflector's requests, and its reaction to each response.

mod failures;
mod first_list;
mod listing;
mod log;
mod outages;
mod quarantine;
mod relisting;
mod script;
mod setbacks;
mod silence;
mod status;
mod streaming;
mod watching;
