//! The API Responses, without stored responses.
//!
//! - `request`: the body of a request
//! - `reply`: an answer, whole or in events

mod reply;
mod request;

pub(super) use reply::ResponsesDecoder;
pub(super) use request::body;

/// The member of a block with an item of the API. The other API skips the block.
const ITEM: &str = "responsesItem";
