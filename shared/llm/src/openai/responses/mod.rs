//! The API Responses, without stored responses.
//!
//! - `request`: the body of a request
//! - `reply`: a whole answer
//! - `stream`: the events of a streamed answer

mod reply;
mod request;
mod stream;

pub(super) use reply::reply;
pub(super) use request::body;
pub(super) use stream::ResponsesStream;

/// The member of a block with an item of the API. The other API skips the block.
const ITEM: &str = "responsesItem";
