//! Requests from here to addresses that clients name: webhooks, and `url` parts
//! which a skill chooses to read.
//!
//! Such an address is a way into the network around the agent. So a URL has
//! one plain form ([`OutboundUrl`]), every address a name resolves to has to be
//! public, and the connection goes to the address that was checked
//! ([`Fetcher`]). No redirect is followed.
//!
//! - `url`: which URLs are taken at all, without asking anybody
//! - `address`: which addresses are public
//! - `client`: the HTTP client behind both

mod address;
#[cfg(feature = "aws")]
mod client;
mod url;

pub use address::is_public;
#[cfg(feature = "aws")]
pub use client::{FetchError, Fetched, Fetcher};
pub use url::{OutboundUrl, Reach, UrlFault};
