//! The wire: three generations of A2A, read and written as pure values.
//!
//! No clock, no ids, no I/O, no `http::Request`. What comes in becomes a
//! `task` command or a [`Refusal`](crate::task::Refusal); what goes out is
//! made of `task` values. `a2a_lf` is named in `v1` alone.

mod legacy;
mod read;
mod v01;
mod v03;
mod v1;
mod write;

use crate::task::Generation;

/// How a call is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// A JSON-RPC 2.0 envelope.
    JsonRpc,
    /// A path and a method; in 0.1: one path a method, with bare parameters.
    Rest,
}

/// The generation and spelling a call came in, and its answer goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The protocol generation.
    pub generation: Generation,
    /// The spelling.
    pub binding: Binding,
}
