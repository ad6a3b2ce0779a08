//! The API Chat Completions.
//!
//! - `request`: the body of a request
//! - `reply`: an answer, whole or in chunks
//! - `kept`: what returns to the service unchanged

mod kept;
mod reply;
mod request;

pub(super) use reply::ChatDecoder;
pub(super) use request::body;
