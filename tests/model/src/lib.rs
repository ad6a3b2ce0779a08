//! An exhaustive model of the task protocol, checked with stateright.
//!
//! It uses nothing of the product (but for `turn/refines.rs`, which compares a
//! commit of the model with the same commit of a record): the rules are written
//! down once more, as small as they can be, and every interleaving of their store calls is tried,
//! with crashes between any two of them and with glitches (an early
//! redelivery, an early end of a lease) up to a budget that is part of the
//! state. What holds here holds for the rules; that the engine follows them is
//! what the simulation is for.
//!
//! | Module | Asks |
//! |---|---|
//! | `turn` | send, continue, cancel, relay, queue, workers, lease, hand-over, sweep, artifacts |
//! | `reader` | a stream that takes a snapshot, tails, is cut and resumes |
//! | `push` | a webhook registered while the turn ends; two couriers, their doorbells and the lease |
//! | `thread` | conversation state written in the transaction of the final commit |
//! | `key` | sends and answers that come again under an idempotency key |
//! | `expiry` | tasks that expire or are deleted, and tasks that must not; the next task of their id |
//! | `context` | the id of a conversation: sliding, expired, remembered, new again |
//!
//! Each has mutants: one rule broken at a time. A mutant that no property
//! notices fails the tests as a violation of the correct rules does.
//!
//! Where each known way to break the protocol is planted. The simulation plants
//! below the real engine (`tests/simulation/src/mutant.rs`), the kills in the
//! proxy before the real program (`tests/kill/main.rs`).
//!
//! | Fault | Here | Also |
//! |---|---|---|
//! | final write without epoch, or without any condition | `turn` | simulation `EpochIgnored`, `BlindCommit`; kill `Unconditional` |
//! | cancel, or idempotency key: read, then write | `turn` | simulation `BlindCommit` |
//! | message deleted before the final write | `turn` | simulation `EarlyDelete` |
//! | continue: check, then act | `turn` | simulation `BlindCommit` |
//! | message dropped on a live lease; by a worker that was fenced out | `turn` | simulation `KeepDeletes` |
//! | write, then enqueue; relay ignores `Failed` | `turn` | simulation `RelayForgets` |
//! | META before S3 | `turn`, `thread` | simulation `LostBlob`; kill `Forget PUT object` |
//! | one artifact key for all epochs | `turn`, `thread` | simulation `OneBlobKey` |
//! | deletion by task, not by receipt | `turn` | simulation `DeleteByTask` |
//! | event sent before its commit, or a commit lost | `reader` | simulation `LostCommit`; kill `Forget` |
//! | continuation, or keyed send, deferred; a client's task id is a key here | `turn` | |
//! | write id ignored, or the latest only compared | `turn`, `thread` | simulation `WriteIdIgnored` |
//! | throttle read as a conflict | `turn` | unit tests of `store/dynamodb/calls.rs` |
//! | relay de-duplicates by (task, turn) | `turn` | simulation `RelayOncePerTurn` |
//! | heartbeat, or sweep, without condition | `turn`, `context` | |
//! | sweep re-dispatches, or fails, by age | `turn` | |
//! | tail after a second read of META, over items only, without the `seq` check | `reader` | kill `Damage` of frames |
//! | children of another incarnation read; new epoch appends | `reader`, `expiry` | |
//! | resume frame with a later state | `reader` | kill `Damage::Late` |
//! | skill run again after a lost thread write; thread written blindly, or torn | `thread` | simulation `BlindThread`; kill `Torn` |
//! | webhook registered without touching META | `push` | |
//! | no second look at the log; the wait noted before its doorbell; a delivery noted without the lease, or a live lease taken | `push` | store contract |
//! | expiry unchecked in one condition, or applied to running work | `expiry`, `context` | |
//! | tombstone forgotten, a server's id made anew, old state taken over | `context` | |
//! | hand-over without dispatch, or before the drop | `turn` | |
//! | attempt not counted | `turn` | |
//! | start or resume keep the epoch | `turn` | simulation `EpochKeptByResume` |
//! | commit, heartbeat or re-apply ignore the incarnation | `expiry` | simulation `IncarnationIgnored` |
//! | a stale read; an old write that comes late | - | kill `Stale`, old writes |
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
