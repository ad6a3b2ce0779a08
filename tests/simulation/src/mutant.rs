//! Planted faults that the simulation must notice; otherwise its properties prove nothing.
//! They are planted between the engine and its services, never in the runtime.

/// One planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A commit overwrites the stored task without a condition.
    BlindCommit,
    /// A turn that lost a race applies its changes again without a check of the epoch.
    EpochIgnored,
    /// A thread is overwritten without a condition.
    BlindThread,
    /// After a lost reply the store does not recognise its own write.
    WriteIdIgnored,
    /// The store acknowledges a commit that it then loses.
    LostCommit,
    /// The blob store acknowledges bytes that it then loses.
    LostBlob,
    /// All attempts share one blob key.
    OneBlobKey,
    /// The message is deleted when it is received.
    EarlyDelete,
    /// A message is deleted although another process holds its turn.
    KeepDeletes,
    /// A deletion removes every message of the task.
    DeleteByTask,
    /// The relay treats entries that the queue refused as sent.
    RelayForgets,
    /// The relay sends only one message per turn.
    RelayOncePerTurn,
    /// An idempotency key is written after the commit it belongs to.
    KeyAfterTask,
    /// An idempotency key is looked up, and then written without a condition.
    KeyUnchecked,
    /// A release drops members that it does not know when it writes a task.
    UnknownDropped,
    /// Commits, heartbeats and changes that are applied again do not check the task's
    /// incarnation.
    IncarnationIgnored,
    /// An answer opens the next turn without raising the epoch.
    EpochKeptByResume,
    /// A push queue message is deleted when it is received.
    PushMessageEarlyDelete,
    /// A turn that an outage ends is never released.
    ReleaseLost,
    /// A release counts as an attempt.
    ReleaseCounted,
    /// The store acknowledges that a push delivery worker has dropped its lease, but keeps it.
    LeaseStays,
    /// The pointer to a task is written after the task.
    PointerAfterTask,
    /// No item beside a task is ever kept longer.
    NothingProlonged,
}

impl Mutant {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| format!("{it:?}") == name)
    }

    pub(crate) const ALL: [Self; 23] = [
        Self::BlindCommit,
        Self::EpochIgnored,
        Self::BlindThread,
        Self::WriteIdIgnored,
        Self::LostCommit,
        Self::LostBlob,
        Self::OneBlobKey,
        Self::EarlyDelete,
        Self::KeepDeletes,
        Self::DeleteByTask,
        Self::RelayForgets,
        Self::RelayOncePerTurn,
        Self::KeyAfterTask,
        Self::KeyUnchecked,
        Self::UnknownDropped,
        Self::IncarnationIgnored,
        Self::EpochKeptByResume,
        Self::PushMessageEarlyDelete,
        Self::ReleaseLost,
        Self::ReleaseCounted,
        Self::LeaseStays,
        Self::PointerAfterTask,
        Self::NothingProlonged,
    ];
}
