//! What the reflector asks for, and what it makes of each answer.

mod failures;
mod first_list;
mod listing;
mod log;
mod outages;
mod relisting;
mod script;
mod set_aside;
mod setbacks;
mod silence;
mod status;
mod streaming;
mod watching;
