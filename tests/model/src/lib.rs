//! An exhaustive model of the task protocol, checked with stateright.
//!
//! It uses nothing of the product: the rules are written down once more, as
//! small as they can be, and every interleaving of their store calls is tried,
//! with crashes between any two of them and with glitches (an early
//! redelivery, an early end of a lease) up to a budget that is part of the
//! state. What holds here holds for the rules; that the engine follows them is
//! what the simulation is for.
//!
//! | Module | Asks |
//! |---|---|
//! | `turn` | send, continue, cancel, relay, queue, workers, lease, hand-over, sweep, artifacts |
//! | `reader` | a stream that takes a snapshot, tails, is cut and resumes |
//! | `push` | a webhook registered while the turn ends |
//! | `thread` | conversation state written in the transaction of the final commit |
//! | `key` | sends and answers that come again under an idempotency key |
//! | `expiry` | tasks that expire, and tasks that must not |
//! | `context` | the id of a conversation: sliding, expired, remembered, new again |
//!
//! Each has mutants: one rule broken at a time. A mutant that no property
//! notices fails the tests as a violation of the correct rules does.
//!
//! `tests/run.sh --only model` runs them optimised; in a plain debug build they
//! are ignored, since some take minutes there.

#[cfg(test)]
mod check;
#[cfg(test)]
mod context;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod key;
#[cfg(test)]
mod push;
#[cfg(test)]
mod reader;
#[cfg(test)]
mod thread;
#[cfg(test)]
mod turn;
