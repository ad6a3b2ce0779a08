//! Reads and writes the wire formats of A2A 0.1, 0.3 and 1.0 as pure values.
//!
//! The crate has no clock, makes no ids, does no I/O and names no
//! `http::Request`. A request becomes a `task` command or a
//! [`A2aError`](a2a_lambda_model::task::A2aError); a response is made of `task` values.
//!
//! A request is routed once ([`RoutedRequest`]) and read in two steps, with
//! authentication and the limiter between them. [`RoutedRequest::open`] finds the
//! operation and the dialect of the request ([`Call`]).
//! [`Call::check_version`] and [`Call::decode`] read the rest. [`answer`],
//! [`refuse`] and [`StreamEncoder`] write in the dialect of the call.

mod call;
mod card;
mod error;
mod json;
mod jsonrpc;
mod legacy;
mod media;
mod method;
mod params;
mod payload;
mod push;
mod request;
mod response;
mod rest;
mod routed_request;
#[cfg(test)]
mod samples;
mod send;
mod sse;
mod stream;
mod upload;
mod v1;
mod version;
mod words;

pub use call::{Call, OpenedRequest, RawRequest, Rejected};
pub use card::{
    Capabilities, CardDocument, CardError, CardInfo, CardShape, CardSignature, EXTENSIONS,
    Extension, SecurityScheme, SignatureError, SkillInfo, Unsigned,
};
pub use error::ErrorRow;
pub use jsonrpc::RpcId;
pub use method::{Operation, methods};
pub use push::push_payload;
pub use request::{CardForm, MethodCall, StreamCall, UnaryCall};
pub use response::{MethodResult, WireResponse, answer, batch, refuse};
pub use rest::{Endpoint, site};
pub use routed_request::{RoutedRequest, open};
pub use stream::StreamEncoder;

use a2a_lambda_model::task::Generation;

/// The protocol binding of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// A JSON-RPC 2.0 envelope (A2A 1.0 §9; A2A 0.3 §3.2.1).
    JsonRpc,
    /// A path and an HTTP method (A2A 1.0 §11; A2A 0.3 §3.2.3). In 0.1: one path
    /// per method, with bare parameters.
    Rest,
}

/// The generation and binding of a call and of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dialect {
    /// The protocol generation.
    pub generation: Generation,
    /// The binding.
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
