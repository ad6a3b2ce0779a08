//! What happens to a task, as its streams show it.

use super::{Artifact, Message, Metadata, TaskState, Timestamp};
use std::fmt;
use std::str::FromStr;

/// The state of a task with what the agent said when it entered it.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The state.
    pub state: TaskState,
    /// The agent's words, or the public text of a failure.
    pub message: Option<Message>,
    /// When the state was entered or the message said.
    pub timestamp: Timestamp,
}

/// One stored, then shown, step of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The status changed, or the agent said something while working.
    Status(StatusUpdate),
    /// An artifact was made or grew.
    Artifact(ArtifactUpdate),
}

/// A change of status.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusUpdate {
    /// The status after it.
    pub status: Status,
    /// Free members, for example `a2a-lambda/restarted`.
    pub metadata: Metadata,
}

/// A new artifact or a chunk of one.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactUpdate {
    /// The artifact with the parts of this chunk only.
    pub artifact: Artifact,
    /// Whether the parts are added to the artifact of the same id; otherwise
    /// they replace it.
    pub append: bool,
    /// Whether this is the last chunk.
    pub last_chunk: bool,
    /// Free members.
    pub metadata: Metadata,
}

/// The id of an event: the version of its commit and its place in it. It is
/// the `id:` line of a stream and the value of `Last-Event-ID`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The task version whose commit stored the event.
    pub version: u64,
    /// The place in that commit, from 1.
    pub n: u32,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.n)
    }
}

/// Text that is not `<version>.<n>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is `<version>.<n>`")]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |part: &str| {
            !part.is_empty() && part.len() <= 18 && part.bytes().all(|b| b.is_ascii_digit())
        };
        let (version, n) = text.split_once('.').ok_or(InvalidEventId)?;
        if !plain(version) || !plain(n) {
            return Err(InvalidEventId);
        }
        Ok(Self {
            version: version.parse().map_err(|_| InvalidEventId)?,
            n: n.parse().map_err(|_| InvalidEventId)?,
        })
    }
}

/// An event with its place in the log of its task.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedEvent {
    /// Its id; never changes, wherever it is stored.
    pub id: EventId,
    /// Its running number over the task, from 1 without gap.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::EventId;

    #[test]
    fn an_event_id_reads_back_and_nothing_else_is_one() {
        let id = EventId { version: 12, n: 3 };
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in [
            "",
            "1",
            "1.",
            ".1",
            "1.2.3",
            "+1.2",
            "1.-2",
            "a.b",
            "1.99999999999999999999",
        ] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }
}
