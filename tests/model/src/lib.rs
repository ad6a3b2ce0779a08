//! An exhaustive model of the task protocol, checked with stateright.
//!
//! The model states the rules once more, as small as possible, and explores every
//! interleaving of their store calls: with crashes between any two calls and with
//! glitches (an early redelivery, an early end of a lease), up to a budget that is part of
//! the state. It uses no code of the runtime. Only `turn/refines.rs` does: it compares
//! commits of the model with commits of a task record. The model proves the rules; the
//! simulation tests that the engine follows them.
//!
//! | Module | Covers |
//! |---|---|
//! | `turn` | send, continue, cancel, relay, queue, workers, lease, hand-over, sweep, artifacts |
//! | `reader` | a stream that takes a snapshot, tails, is cut and resumes |
//! | `push` | a push config registered while the turn ends; two push delivery workers, their queue messages and the lease |
//! | `thread` | thread state written in the transaction of the final commit |
//! | `key` | sends and answers repeated under an idempotency key |
//! | `expiry` | tasks that expire or are deleted, running tasks that must not; the next task of the same id |
//! | `context` | the id of a context: extended, expired, remembered, new again |
//!
//! Each module has mutants: one rule is broken at a time. A mutant that no property
//! notices fails the tests, just as a violation of the correct rules does.
//!
//! The table shows where each known fault of the protocol is planted. The simulation
//! plants faults below the real engine (`tests/simulation/src/mutant.rs`). The kill tests
//! plant them in the proxy in front of the real program (`tests/kill/main.rs`).
//!
//! | Fault | Here | Also |
//! |---|---|---|
//! | final write without epoch, or without any condition | `turn` | simulation `EpochIgnored`, `BlindCommit`; kill `Unconditional` |
//! | cancel, or idempotency key: read, then write | `turn` | simulation `BlindCommit` |
//! | message deleted before the final write | `turn` | simulation `EarlyDelete` |
//! | continue: check, then write without a condition | `turn` | simulation `BlindCommit` |
//! | message dropped on a live lease; by a worker that was fenced out | `turn` | simulation `KeepDeletes` |
//! | write, then enqueue; relay ignores `Failed` | `turn` | simulation `RelayForgets` |
//! | META before S3 | `turn`, `thread` | simulation `LostBlob`; kill `Forget PUT object` |
//! | one artifact key for all epochs | `turn`, `thread` | simulation `OneBlobKey` |
//! | deletion by task, not by receipt | `turn` | simulation `DeleteByTask` |
//! | event sent before its commit, or a commit lost | `reader` | simulation `LostCommit`; kill `Forget` |
//! | continuation, or keyed send, deferred (a client's task id counts as a key here) | `turn` | |
//! | write id ignored, or compared with the latest only | `turn`, `thread` | simulation `WriteIdIgnored` |
//! | throttle read as a conflict | `turn` | unit tests of `aws/src/dynamodb/outcome.rs` |
//! | relay removes duplicates by (task, turn) | `turn` | simulation `RelayOncePerTurn` |
//! | heartbeat, or sweep, without condition | `turn`, `context` | |
//! | sweep re-dispatches, or fails, a task because of its age | `turn` | |
//! | tail after a second read of META, over items only, without the `seq` check | `reader` | kill `Damage` of frames |
//! | children of another incarnation read; new epoch appends | `reader`, `expiry` | |
//! | resume frame with a later state | `reader` | kill `Damage::Late` |
//! | skill run again after a lost thread write; thread written blindly, or torn | `thread` | simulation `BlindThread`; kill `Torn` |
//! | push config registered without touching META | `push` | |
//! | no second read of the log; the wait recorded before its queue message; a delivery recorded without the lease, or a live lease taken | `push` | store contract |
//! | expiry unchecked in one condition, or applied to running work | `expiry`, `context` | |
//! | tombstone forgotten, a server's id created anew, old state taken over | `context` | |
//! | hand-over without dispatch, or before the drop | `turn` | |
//! | attempt not counted | `turn` | |
//! | start or resume keep the epoch | `turn` | simulation `EpochKeptByResume` |
//! | commit, heartbeat or re-apply ignore the incarnation | `expiry` | simulation `IncarnationIgnored` |
//! | a stale read; an old write that arrives late | - | kill `Stale`, old writes |
//!
//! `tests/run.sh --only model` runs the models optimised. A plain debug build ignores most
//! of the tests, since some take minutes there.

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
