//! What the memory skills do without a store: finding memories, and removing personal data.

#![cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the skills that call this module are not written yet"
    )
)]

pub(crate) mod redact;
pub(crate) mod search;
