//! The room as a whole, as an author meets it.

mod agent;
mod attribute;
mod context;
mod error;
mod input;
mod media;
