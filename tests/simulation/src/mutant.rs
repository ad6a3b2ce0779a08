//! Planted faults: what the simulation has to see, or it proves nothing. They
//! live between the engine and its services, never in the product.

/// One planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A commit stands whatever is stored.
    BlindCommit,
    /// A turn that lost a race applies its changes again, whatever the epoch.
    EpochIgnored,
    /// A thread is written whatever is stored.
    BlindThread,
    /// The store does not know its own write when the answer was lost.
    WriteIdIgnored,
    /// The store acknowledges a commit that it then loses.
    LostCommit,
    /// The blob store acknowledges bytes that it then loses.
    LostBlob,
    /// One blob key for every attempt.
    OneBlobKey,
    /// The message is deleted when it is received.
    EarlyDelete,
    /// A message is deleted although its turn is another's.
    KeepDeletes,
    /// A deletion takes every message of the task.
    DeleteByTask,
    /// The relay takes what the queue refused for sent.
    RelayForgets,
    /// The relay sends one message a turn.
    RelayOncePerTurn,
    /// An idempotency key is written after the commit it belongs to.
    KeyAfterTask,
    /// An idempotency key is looked up, and then written whatever is stored.
    KeyUnchecked,
    /// A release drops what it does not know of a task when it writes it.
    UnknownDropped,
    /// Commits, heartbeats and changes that are applied again do not ask which task
    /// has the id.
    IncarnationIgnored,
    /// An answer opens the next turn and leaves the epoch as it is.
    EpochKeptByResume,
    /// A doorbell is deleted when it is received.
    BellEarlyDelete,
    /// The store acknowledges that a courier has dropped its lease, and keeps it.
    LeaseStays,
}

impl Mutant {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| format!("{it:?}") == name)
    }

    pub(crate) const ALL: [Self; 19] = [
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
        Self::BellEarlyDelete,
        Self::LeaseStays,
    ];
}
