//! Knowledge as git objects: what the knowledge skills do without AWS.
//!
//! Each tenant has one repository. A human who clones it finds the items as files:
//!
//! ```text
//! company/security/secrets.md
//! project/checkout/adr/0001-use-dynamodb.md
//! team/payments/patterns/retry.md
//! ```
//!
//! `path` says which names an item may have, `item` what its file looks like,
//! `objects` how an object is stored and checked, `repository` and `history` read and
//! write, `export` writes a folder that git clones. The head is kept elsewhere: a commit
//! becomes visible when the caller moves the head from the commit's parent to the commit.

mod authors;
pub(crate) mod error;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod item;
pub(crate) mod objects;
pub(crate) mod path;
pub(crate) mod repository;
pub(crate) mod skills;
pub(crate) mod store;

pub use crate::sets::knowledge as set;

#[cfg(test)]
mod tests;
