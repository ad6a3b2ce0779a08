//! Reads and writes A2A 1.0, in `ProtoJSON` (A2A 1.0 §5.5).
//!
//! The official Rust types (`a2a-lf`, crate `a2a`) are the oracle of the tests. The code does
//! not use them:
//!
//! - Reading, they accept parts with two contents, empty enums and ids, and negative numbers.
//!   They refuse proto names (`task_id`), base64 without padding, and integers as strings.
//! - Writing, they leave `.000` out of times, and hold a copy of everything.

mod decode;
mod encode;
mod push;

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
