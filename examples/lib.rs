//! Programs that show one thing each. Every program has a test that runs it.
//!
//! | Program | Shows |
//! |---|---|
//! | `message_only` | a skill that replies and makes no task |
//! | `one_shot` | a task with typed input and typed output |
//! | `multi_turn` | a skill that asks questions |
//! | `streaming` | status updates, and a text in chunks |
//! | `hybrid` | replies of a model decide whether the skill asks or ends |
//! | `background` | work that continues behind the call, in steps |
//! | `files` | a file in, another file out |
//! | `state` | a value that skills share, made from a secret |
//! | `custom_store` | a store of an author's own in the place of the library's |
//! | `own_server` | the agent behind a server of an author's own |
//!
//! `cargo run -p examples --example multi_turn` runs one of them.
