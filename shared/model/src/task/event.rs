//! The events of a task, as its streams show them.

use super::{Artifact, Message, Metadata, Part, TaskState, Timestamp, WriteId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::ops::Not;
use std::str::FromStr;

/// The state of a task, and the agent's message for it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Status {
    /// The state.
    pub state: TaskState,
    /// The agent's message, or the public text of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Message>,
    /// When the state was entered or the message sent.
    pub timestamp: Timestamp,
}

/// One stored step of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// The status changed, or the agent sent a message while working.
    #[serde(rename = "statusUpdate")]
    Status(StatusUpdate),
    /// An artifact was created or extended.
    #[serde(rename = "artifactUpdate")]
    Artifact(ArtifactUpdate),
}

impl Event {
    /// Its parts.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        let (message, artifact) = match self {
            Self::Status(update) => (update.status.message.as_mut(), None),
            Self::Artifact(update) => (None, Some(&mut update.artifact)),
        };
        let message_parts = message.into_iter().flat_map(|it| it.parts.iter_mut());
        message_parts.chain(artifact.into_iter().flat_map(|it| it.parts.iter_mut()))
    }
}

/// A change of status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusUpdate {
    /// The status after it.
    pub status: Status,
    /// Free-form members, for example `a2a-lambda/restarted`.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// A new artifact or a chunk of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// The artifact with the parts of this chunk only.
    pub artifact: Artifact,
    /// Whether the parts are added to the artifact of the same id; otherwise
    /// they replace it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub append: bool,
    /// Whether this is the last chunk.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub last_chunk: bool,
    /// Free-form members.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
}

/// The id of an event: the version of its commit and its position in it. It is the
/// `id:` line of a stream and the value of `Last-Event-ID`.
///
/// A client can use a client-made task id again once the task is gone. The event ids
/// of such a task contain a mark of its incarnation, so that an event of an earlier
/// task is not taken for one of a later task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EventId {
    /// The task version whose commit stored the event.
    pub version: u64,
    /// The position in that commit, from 1.
    pub n: u32,
    /// The mark of the incarnation; `None` for a server-made task id.
    pub mark: Option<EventMark>,
}

impl EventId {
    /// The id of the event after it in the same commit.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        let n = self.n.checked_add(1)?;
        Some(Self { n, ..self })
    }

    /// The id of the first event of the next commit.
    #[must_use]
    pub fn next_commit(self) -> Option<Self> {
        let version = self.version.checked_add(1)?;
        Some(Self {
            version,
            n: 1,
            ..self
        })
    }
}

/// Distinguishes the events of a task from those of another task with its id.
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

impl From<EventId> for String {
    fn from(id: EventId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for EventId {
    type Error = EventIdError;

    fn try_from(text: String) -> Result<Self, EventIdError> {
        text.parse()
    }
}

/// Text that is not an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is `<version>.<n>` or `<version>.<n>.<mark>`")]
pub struct EventIdError;

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |part: &str| {
            !part.is_empty() && part.len() <= 18 && part.bytes().all(|b| b.is_ascii_digit())
        };
        let hex = |part: &str| {
            part.len() == 8 && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let (version, rest) = text.split_once('.').ok_or(EventIdError)?;
        let (n, mark) = match rest.split_once('.') {
            Some((n, mark)) => (n, Some(mark)),
            None => (rest, None),
        };
        if !plain(version) || !plain(n) || !mark.is_none_or(hex) {
            return Err(EventIdError);
        }
        let mark = mark.map(|mark| u32::from_str_radix(mark, 16).map(EventMark));
        Ok(Self {
            version: version.parse().map_err(|_| EventIdError)?,
            n: n.parse().map_err(|_| EventIdError)?,
            mark: mark.transpose().map_err(|_| EventIdError)?,
        })
    }
}

/// An event with its number in the log of its task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoggedEvent {
    /// Its id; it never changes.
    pub id: EventId,
    /// Its number in the log, from 1 without a gap.
    pub seq: u64,
    /// What happened.
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::{EventId, EventIdError, EventMark, WriteId};
    use a2a_lambda_rows::each_row;

    #[test]
    fn an_event_id_reads_back_and_malformed_text_is_refused() {
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
        let rows = [
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
        ];
        each_row(rows, |bad| {
            assert_eq!(bad.parse::<EventId>(), Err(EventIdError), "{bad}");
        });
    }

    #[test]
    fn tasks_with_the_same_id_have_different_event_marks() {
        let mark = |number| EventMark::of(&WriteId::made_of(number));
        assert_eq!(mark(1), mark(1));
        assert_ne!(mark(1), mark(2));
        assert_ne!(mark(1), mark(1 << 64));
    }
}
