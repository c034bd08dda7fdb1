//! What the reflector asks for, and what it makes of each answer.

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
