//! The wire: three generations of A2A, read and written as pure values.
//!
//! No clock, no ids, no I/O, no `http::Request`. What comes in becomes a
//! `task` command or a [`Refusal`](crate::task::Refusal); what goes out is
//! made of `task` values. `a2a_lf` is named in `v1` alone.
//!
//! A request passes in two steps, with authentication and the limiter between
//! them: [`open`] finds out what is asked and in which words ([`Call`]), and
//! [`Call::check_version`] and [`Call::decode`] read the rest. [`answer`],
//! [`refuse`] and [`StreamEncoder`] speak the words of the call.

mod answer;
mod ask;
mod call;
mod card;
mod context;
mod error;
mod idempotency;
mod json;
mod jsonrpc;
mod legacy;
mod media;
mod method;
mod notice;
mod read;
mod rest;
mod sse;
mod stream;
mod upload;
mod v01;
mod v03;
mod v1;
mod version;
mod write;

pub use answer::{Answer, Reply, answer, batch, refuse};
pub use ask::{Ask, CardForm};
pub use call::{Call, Opened, RawRequest, Rejected, open, reject};
pub use card::{
    ApiKeyLocation, Capabilities, CardError, CardInfo, CardShape, CardSignature, Document,
    EXTENSIONS, Extension, InvalidSignature, Provider, SecurityScheme, SkillInfo, Unsigned,
};
pub use error::ErrorRow;
pub use jsonrpc::RpcId;
pub use method::{Operation, methods};
pub use notice::notice;
pub use rest::{Site, site};
pub use stream::StreamEncoder;

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

impl Dialect {
    const fn json_rpc(generation: Generation) -> Self {
        Self {
            generation,
            binding: Binding::JsonRpc,
        }
    }

    const fn rest(generation: Generation) -> Self {
        Self {
            generation,
            binding: Binding::Rest,
        }
    }
}
