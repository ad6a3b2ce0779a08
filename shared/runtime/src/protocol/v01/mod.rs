//! See protocol/mod.rs.
