//! What one commit can change, and what each change does to a record.
//!
//! A change that streams show returns an event. Everything here is pure, so the
//! changes can be applied again to a fresh record after a lost race.
//!
//! - `apply`: applies a change to a record
//! - `checkpoint`: the output that a turn keeps if it runs again

mod apply;
mod checkpoint;

use super::{
    ArtifactUpdate, BuildId, Message, Metadata, OutputCounts, PushRegistration, SavePlace,
    SavedSlot, SealedAnswer, SessionRead, SkillId, SkillRoute, StepResult, StepTries, Timestamp,
    TokenUse, TurnRequest,
};
use serde_json::Value;

/// One step of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The client's first message. It does not change the state.
    Accept {
        /// The message.
        message: Message,
    },
    /// The message that opened the turn is sealed: the history has another one in its place.
    Seal(SealedAnswer),
    /// The task belongs to this skill from now on. The route says why.
    Pin(SkillId, Option<SkillRoute>),
    /// The turn keeps the parts of its request that it needs, as long as it runs.
    Request(TurnRequest),
    /// The turn is dispatched to a worker: the version of this commit is the intent. If
    /// it has a lease, that has run out, and the attempt counts.
    Dispatch,
    /// A worker claims the turn, for the first time or again. The output of an
    /// earlier attempt after its last checkpoint is taken back.
    Claim {
        /// Until when no other worker may claim the turn.
        lease_until: Timestamp,
    },
    /// The client answers an open question, and the turn is dispatched to a worker.
    Queue {
        /// The answer.
        message: Message,
        /// The sealed answer, if it stays out of the history (credentials).
        secret: Option<SealedAnswer>,
    },
    /// The turn is handed over: its lease ends and it is dispatched to another
    /// worker.
    HandOver {
        /// Whether a step or checkpoint has completed since the claim. Then the
        /// attempts count from 0 again; otherwise the hand-over is one more.
        progress: bool,
    },
    /// A run gives its turn back, for example because of an outage: its lease ends and the turn
    /// is dispatched to a worker. It counts no attempt.
    Release {
        /// No worker begins the turn before.
        not_before: Timestamp,
    },
    /// A turn starts in this process, with a lease.
    Start {
        /// Until when no other worker may claim the turn.
        lease_until: Timestamp,
    },
    /// The client answers an open question, and the turn runs in this process.
    Resume {
        /// When the turn begins, which its skill may read before this is stored.
        began_at: Timestamp,
        /// The answer.
        message: Message,
        /// The sealed answer, if it stays out of the history (credentials).
        secret: Option<SealedAnswer>,
        /// Until when no other worker may claim the turn.
        lease_until: Timestamp,
    },
    /// The agent sends a message while it works.
    Update {
        /// The message.
        message: Option<Message>,
        /// Free-form members of the event.
        metadata: Metadata,
    },
    /// An artifact is created or extended.
    Artifact(ArtifactUpdate),
    /// The skill saves a value.
    Save {
        /// The key of the value.
        key: String,
        /// The value.
        value: Value,
        /// Where the skill is then.
        save_place: Box<SavePlace>,
        /// Outside of steps: the path of this save, and its place in the order of results.
        order: Option<(String, u64)>,
        /// How many outputs the turn had said before.
        outputs: OutputCounts,
        /// What the turn has loaded since the last change that kept it.
        reads: Vec<SessionRead>,
    },
    /// A step has ended. Its result replaces those of the steps inside it.
    Step {
        /// The path of the step.
        key: String,
        /// Its result.
        result: Box<StepResult>,
        /// How many outputs the turn had said before.
        outputs: OutputCounts,
        /// What the turn has loaded since the last change that kept it.
        reads: Vec<SessionRead>,
    },
    /// This build stores the results of the turn from now on.
    Build(Option<BuildId>),
    /// A step is open and has been tried.
    Tries(String, StepTries),
    /// Calls of models have ended since the last commit. The flag: a result is partial.
    Use(TokenUse, bool),
    /// The agent asks the client.
    AskInput {
        /// The question.
        message: Message,
        /// The slot.
        slot: SavedSlot,
    },
    /// The agent needs credentials.
    AskAuth {
        /// The needed credentials.
        message: Message,
        /// The slot.
        slot: SavedSlot,
    },
    /// The turn succeeded.
    Complete {
        /// A closing message.
        message: Option<Message>,
    },
    /// The turn failed.
    Fail {
        /// The public text, with error code and details in its metadata.
        message: Message,
    },
    /// The agent rejected the task.
    Reject {
        /// The reason.
        message: Message,
    },
    /// The client canceled the task.
    Cancel,
    /// A push config is registered in the same commit.
    RegisterPush(Box<PushRegistration>),
}
