//! Writes A2A 1.0, in `ProtoJSON` (A2A 1.0 §5.5). [`params`](super::params) reads it.
//!
//! The official Rust types (`a2a-lf`, crate `a2a`) are the oracle of the tests. The code does
//! not use them:
//!
//! - Reading, they accept parts with two contents, empty enums and ids, and negative numbers.
//!   They refuse proto names (`task_id`), base64 without padding, and integers as strings.
//! - Writing, they leave `.000` out of times, and hold a copy of everything.

mod encode;

pub(super) use encode::View;

#[cfg(test)]
mod tests;

/// Asserts that the official types read `card`.
#[cfg(test)]
pub(super) fn reads_card(card: &serde_json::Value) {
    let read: a2a::AgentCard = serde_json::from_value(card.clone()).expect("a card of 1.0");
    assert_eq!(read.supported_interfaces[0].protocol_version, "1.0");
    assert_eq!(
        card["skills"].as_array().map(Vec::len),
        Some(read.skills.len())
    );
}
