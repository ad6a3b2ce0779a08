//! The whole agent on one machine.

pub mod embedded;
