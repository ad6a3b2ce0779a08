//! Reads A2A 1.0 with the official Rust types (`a2a-lf`, crate `a2a`), and writes it.
//!
//! Only this module names those types, so that they can be replaced. It corrects
//! them where they differ from the specification:
//!
//! - Reading, too lenient: they accept parts with two contents, members of a wrong
//!   type, empty or unspecified enums, empty `parts` and `messageId`, and negative
//!   numbers. So `schema` checks the JSON first and names each fault by its path.
//! - Reading, too strict: they refuse original proto names (`task_id`), base64 in the
//!   URL alphabet or without padding, and integers as strings. So `schema` rewrites
//!   these first.
//! - Writing: they leave `.000` out of times, their maps have no order, and they hold a
//!   copy of everything. So `encode` writes the objects without them.

mod decode;
mod encode;
mod push;
mod schema;

pub(super) use decode::{
    decode_cancel, decode_get, decode_get_pairs, decode_list, decode_list_pairs, decode_send,
    decode_subscribe,
};
pub(super) use encode::{FrameWriter, PageWriter, SentWriter, TaskWriter};
pub(super) use push::{
    decode_create_push, decode_list_pushes, decode_list_pushes_pairs, decode_one_push, encode_push,
    encode_pushes,
};

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
