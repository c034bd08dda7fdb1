//! What the reflector asks for, and what it makes of each answer.

mod listing;
mod script;
mod set_aside;
mod setbacks;
mod status;
mod watching;
