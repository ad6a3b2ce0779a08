//! Sends requests to URLs that clients name: webhooks, and the `url` parts that a
//! skill reads.
//!
//! Through such a URL a client could reach the network around the agent. Therefore a
//! URL must have one plain form ([`OutboundUrl`]), every address of its host must be
//! public, and the client connects to the address that was checked ([`Fetcher`]). It
//! follows no redirect.
//!
//! - `url`: checks URLs, without DNS
//! - `address`: says which addresses are public
//! - `fetcher`, `request`: requests to other services, and which are worth another try
//! - `response`: what comes back, in a test from the test itself
//! - `client`: the HTTP client, which checks each address after the DNS

mod address;
#[cfg(feature = "fetch")]
mod client;
mod fetcher;
mod request;
pub(crate) mod response;
mod url;
#[cfg(feature = "aws")]
pub mod webhook;

pub use address::is_public;
pub use fetcher::Fetcher;
pub use request::FetchRequest;
pub use response::{FetchError, Fetched};
pub use url::{AddressPolicy, OutboundUrl, UrlError};
