//! Tests of the module as a skill author uses it.

mod agent;
mod attribute;
mod context;
mod error;
mod gate;
mod input;
mod media;
