//! What happens to a task, as its streams show it.

use super::{Artifact, Message, Metadata, TaskState, Timestamp, WriteId};
use sha2::{Digest as _, Sha256};
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
///
/// Where a client makes the id of a task, it can use it again once the task is
/// gone. The ids of such a task's events carry the mark of its incarnation, so
/// that the event of an earlier task is no event of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The task version whose commit stored the event.
    pub version: u64,
    /// The place in that commit, from 1.
    pub n: u32,
    /// The mark of the incarnation; none where no other task gets the id.
    pub mark: Option<EventMark>,
}

/// What tells the events of a task from those of another one under its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventMark(u32);

impl EventMark {
    /// The mark of a task.
    pub(super) fn of(incarnation: &WriteId) -> Self {
        let hash: [u8; 32] = Sha256::digest(incarnation.as_str()).into();
        let [a, b, c, d, ..] = hash;
        Self(u32::from_be_bytes([a, b, c, d]))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.version, self.n)?;
        match self.mark {
            Some(EventMark(mark)) => write!(f, ".{mark:08x}"),
            None => Ok(()),
        }
    }
}

/// Text that is no event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is `<version>.<n>` or `<version>.<n>.<mark>`")]
pub struct InvalidEventId;

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |part: &str| {
            !part.is_empty() && part.len() <= 18 && part.bytes().all(|b| b.is_ascii_digit())
        };
        let hex = |part: &str| {
            part.len() == 8 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let (version, rest) = text.split_once('.').ok_or(InvalidEventId)?;
        let (n, mark) = match rest.split_once('.') {
            Some((n, mark)) => (n, Some(mark)),
            None => (rest, None),
        };
        if !plain(version) || !plain(n) || !mark.is_none_or(hex) {
            return Err(InvalidEventId);
        }
        let mark = mark.map(|mark| u32::from_str_radix(mark, 16).map(EventMark));
        Ok(Self {
            version: version.parse().map_err(|_| InvalidEventId)?,
            n: n.parse().map_err(|_| InvalidEventId)?,
            mark: mark.transpose().map_err(|_| InvalidEventId)?,
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
    use super::{EventId, EventMark, WriteId};

    #[test]
    fn an_event_id_reads_back_and_nothing_else_is_one() {
        let id = EventId {
            version: 12,
            n: 3,
            mark: None,
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        for mark in [0, 0xab, u32::MAX] {
            let mark = Some(EventMark(mark));
            let id = EventId { mark, ..id };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
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
            "1.2.",
            "1.2.0123456",
            "1.2.012345678",
            "1.2.0123456F",
            "1.2.+1234567",
            "1.2.01234567.",
        ] {
            assert!(bad.parse::<EventId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tasks_under_one_id_have_marks_of_their_own() {
        let mark = |number| EventMark::of(&WriteId::made_of(number));
        assert_eq!(mark(1), mark(1));
        assert_ne!(mark(1), mark(2));
        assert_ne!(mark(1), mark(1 << 64));
    }
}
