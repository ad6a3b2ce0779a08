//! Messages, parts, artifacts and events in their stored form.
//!
//! A form that is written borrows the texts of the record. One that was read owns them.

use super::part_list;
use super::schema::corrupt;
use crate::store::StoreError;
use crate::task::{
    self, ArtifactUpdate, ContextId, Event, EventId, LoggedEvent, Metadata, Role, StatusUpdate,
    TaskId, TaskState, Timestamp,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredMessage<'a> {
    i: Cow<'a, str>,
    r: StoredRole,
    #[serde(with = "part_list")]
    p: Vec<StoredPart<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) c: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) t: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    rf: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    x: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Cow<'a, Metadata>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum StoredRole {
    #[serde(rename = "u")]
    User,
    #[serde(rename = "a")]
    Agent,
}

impl<'a> From<&'a task::Message> for StoredMessage<'a> {
    fn from(message: &'a task::Message) -> Self {
        Self {
            i: message.id.as_str().into(),
            r: match message.role {
                Role::User => StoredRole::User,
                Role::Agent => StoredRole::Agent,
            },
            p: message.parts.iter().map(StoredPart::from).collect(),
            c: message.context_id.as_ref().map(|id| id.as_str().into()),
            t: message.task_id.as_ref().map(|id| id.as_str().into()),
            rf: Cow::Borrowed(&message.reference_task_ids),
            x: Cow::Borrowed(&message.extensions),
            m: Cow::Borrowed(&message.metadata),
        }
    }
}

impl StoredMessage<'_> {
    pub(super) fn into_message(self) -> Result<task::Message, StoreError> {
        Ok(task::Message {
            id: self.i.into_owned(),
            role: match self.r {
                StoredRole::User => Role::User,
                StoredRole::Agent => Role::Agent,
            },
            parts: all(self.p, StoredPart::into_part)?,
            context_id: self.c.map(ContextId::parse).transpose().map_err(corrupt)?,
            task_id: self.t.map(TaskId::parse).transpose().map_err(corrupt)?,
            reference_task_ids: self.rf.into_owned(),
            extensions: self.x.into_owned(),
            metadata: self.m.into_owned(),
        })
    }
}

/// Converts every item, or returns the first error.
pub(super) fn all<S, T>(
    items: Vec<S>,
    turn: impl Fn(S) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    items.into_iter().map(turn).collect()
}

/// A part. Its form is an element of a list of parts (see `part_list`).
#[derive(Clone, PartialEq)]
pub(super) struct StoredPart<'a> {
    pub(super) c: StoredContent<'a>,
    pub(super) f: Option<Cow<'a, str>>,
    pub(super) t: Option<Cow<'a, str>>,
    pub(super) m: Cow<'a, Metadata>,
}

impl StoredPart<'_> {
    pub(super) fn of_text(text: String) -> Self {
        Self {
            c: StoredContent::Text(text.into()),
            f: None,
            t: None,
            m: Cow::default(),
        }
    }

    /// The text of a part that has nothing else.
    pub(super) fn plain(&self) -> Option<&str> {
        match self {
            Self {
                c: StoredContent::Text(text),
                f: None,
                t: None,
                m,
            } if m.is_empty() => Some(text),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum StoredContent<'a> {
    #[serde(rename = "t")]
    Text(Cow<'a, str>),
    /// Base64 with padding.
    #[serde(rename = "r")]
    Raw(String),
    #[serde(rename = "u")]
    Url(Cow<'a, str>),
    #[serde(rename = "d")]
    Data(Cow<'a, Value>),
    #[serde(rename = "b")]
    Stored {
        k: Cow<'a, str>,
        n: u64,
        h: Cow<'a, str>,
        /// The id of the upload the bytes came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        u: Option<Cow<'a, str>>,
    },
}

impl<'a> From<&'a task::Part> for StoredPart<'a> {
    fn from(part: &'a task::Part) -> Self {
        Self {
            c: match &part.content {
                task::PartContent::Text(text) => StoredContent::Text(text.into()),
                task::PartContent::Raw(bytes) => StoredContent::Raw(STANDARD.encode(bytes)),
                task::PartContent::Url(url) => StoredContent::Url(url.into()),
                task::PartContent::Data(data) => StoredContent::Data(Cow::Borrowed(data)),
                task::PartContent::Stored(blob) => StoredContent::Stored {
                    k: blob.key.as_str().into(),
                    n: blob.size,
                    h: blob.sha256.as_str().into(),
                    u: blob.upload.as_deref().map(Cow::Borrowed),
                },
            },
            f: part.filename.as_deref().map(Cow::Borrowed),
            t: part.media_type.as_deref().map(Cow::Borrowed),
            m: Cow::Borrowed(&part.metadata),
        }
    }
}

impl StoredPart<'_> {
    pub(super) fn into_part(self) -> Result<task::Part, StoreError> {
        Ok(task::Part {
            content: match self.c {
                StoredContent::Text(text) => task::PartContent::Text(text.into_owned()),
                StoredContent::Raw(text) => {
                    task::PartContent::Raw(STANDARD.decode(text).map_err(corrupt)?.into())
                }
                StoredContent::Url(url) => task::PartContent::Url(url.into_owned()),
                StoredContent::Data(data) => task::PartContent::Data(data.into_owned()),
                StoredContent::Stored { k, n, h, u } => task::PartContent::Stored(task::Blob {
                    key: k.into_owned(),
                    size: n,
                    sha256: h.into_owned(),
                    upload: u.map(Cow::into_owned),
                }),
            },
            filename: self.f.map(Cow::into_owned),
            media_type: self.t.map(Cow::into_owned),
            metadata: self.m.into_owned(),
        })
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredArtifact<'a> {
    pub(super) i: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    d: Option<Cow<'a, str>>,
    #[serde(with = "part_list")]
    pub(super) p: Vec<StoredPart<'a>>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    x: Cow<'a, [String]>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Cow<'a, Metadata>,
    /// The turn whose skill wrote it in chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    j: Option<u32>,
}

impl<'a> From<&'a task::Artifact> for StoredArtifact<'a> {
    fn from(artifact: &'a task::Artifact) -> Self {
        Self::with(artifact, &artifact.parts)
    }
}

impl<'a> StoredArtifact<'a> {
    /// The artifact with these of its parts alone.
    pub(super) fn with(artifact: &'a task::Artifact, parts: &'a [task::Part]) -> Self {
        Self {
            i: artifact.id.as_str().into(),
            n: artifact.name.as_deref().map(Cow::Borrowed),
            d: artifact.description.as_deref().map(Cow::Borrowed),
            p: parts.iter().map(StoredPart::from).collect(),
            x: Cow::Borrowed(&artifact.extensions),
            m: Cow::Borrowed(&artifact.metadata),
            j: artifact.chunks_of,
        }
    }

    /// Whether `self` is the same artifact but for its parts.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        let Self {
            i,
            n,
            d,
            p: _,
            x,
            m,
            j,
        } = self;
        let is_named = *i == other.i && *n == other.n && *d == other.d;
        is_named && *x == other.x && *m == other.m && *j == other.j
    }

    /// The artifact with these parts alone.
    pub(super) fn with_parts(&self, parts: Vec<StoredPart<'a>>) -> Self {
        Self {
            i: self.i.clone(),
            n: self.n.clone(),
            d: self.d.clone(),
            p: parts,
            x: self.x.clone(),
            m: self.m.clone(),
            j: self.j,
        }
    }

    pub(super) fn into_artifact(self) -> Result<task::Artifact, StoreError> {
        Ok(task::Artifact {
            id: self.i.into_owned(),
            name: self.n.map(Cow::into_owned),
            description: self.d.map(Cow::into_owned),
            parts: all(self.p, StoredPart::into_part)?,
            extensions: self.x.into_owned(),
            metadata: self.m.into_owned(),
            chunks_of: self.j,
        })
    }
}

/// A status. The short form of a task leaves members out and restores them before the
/// status is read.
#[derive(Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredStatus<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) s: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) m: Option<StoredMessage<'a>>,
    /// Replaces a message that the text already contains: its index in the history,
    /// or the length of the history for the message of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) r: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) t: Option<i64>,
}

impl<'a> From<&'a task::Status> for StoredStatus<'a> {
    fn from(status: &'a task::Status) -> Self {
        Self {
            s: Some(status.state.as_str().into()),
            m: status.message.as_ref().map(StoredMessage::from),
            r: None,
            t: Some(status.timestamp.as_millis()),
        }
    }
}

impl StoredStatus<'_> {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn into_status(self) -> Result<task::Status, StoreError> {
        Ok(task::Status {
            state: state(&required(self.s, "s")?)?,
            message: self.m.map(StoredMessage::into_message).transpose()?,
            timestamp: Timestamp::from_millis(required(self.t, "t")?),
        })
    }
}

/// A member that the form must have.
pub(super) fn required<T>(member: Option<T>, name: &str) -> Result<T, StoreError> {
    member.ok_or_else(|| corrupt(format_args!("no `{name}`")))
}

pub(super) fn state(name: &str) -> Result<TaskState, StoreError> {
    TaskState::parse(name).ok_or_else(|| corrupt(format_args!("unknown state `{name}`")))
}

/// An event, or a run of chunks; then id and number are those of its first event. The short
/// form of a task leaves members out, as for a status.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredEvent<'a> {
    pub(super) i: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) n: Option<u64>,
    pub(super) e: StoredEventContent<'a>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Cow<'a, Metadata>,
}

#[derive(Serialize, Deserialize)]
pub(super) enum StoredEventContent<'a> {
    #[serde(rename = "s")]
    Status(StoredStatus<'a>),
    #[serde(rename = "a")]
    Artifact {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<StoredArtifact<'a>>,
        /// Replaces an artifact that the text already contains: its index.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        r: Option<usize>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        p: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        l: bool,
    },
    /// Events that each append one of these parts to the artifact of the entry before.
    #[serde(rename = "p")]
    Parts(#[serde(with = "part_list")] Vec<StoredPart<'a>>),
    /// Events that each append one part to an artifact in the same text: its index, the index
    /// of the first part, and how many the commits appended that follow each other.
    #[serde(rename = "c")]
    Chunks(usize, usize, Vec<usize>),
}

impl<'a> StoredEventContent<'a> {
    /// One chunk that is neither the first nor the last.
    pub(super) const fn chunk(artifact: StoredArtifact<'a>) -> Self {
        Self::Artifact {
            a: Some(artifact),
            r: None,
            p: true,
            l: false,
        }
    }

    /// The parts that the entry adds. If it refers to an artifact, that is `whole`.
    pub(super) fn parts<'s>(
        &'s self,
        whole: &'s StoredArtifact<'a>,
    ) -> Option<&'s [StoredPart<'a>]> {
        match self {
            Self::Artifact { a, .. } => Some(&a.as_ref().unwrap_or(whole).p),
            Self::Parts(parts) => Some(parts),
            Self::Chunks(..) | Self::Status(_) => None,
        }
    }
}

impl<'a> From<&'a LoggedEvent> for StoredEvent<'a> {
    fn from(logged: &'a LoggedEvent) -> Self {
        let (e, m) = match &logged.event {
            Event::Status(update) => (
                StoredEventContent::Status(StoredStatus::from(&update.status)),
                &update.metadata,
            ),
            Event::Artifact(update) => (
                StoredEventContent::Artifact {
                    a: Some(StoredArtifact::from(&update.artifact)),
                    r: None,
                    p: update.append,
                    l: update.last_chunk,
                },
                &update.metadata,
            ),
        };
        Self {
            i: logged.id.to_string(),
            n: Some(logged.seq),
            e,
            m: Cow::Borrowed(m),
        }
    }
}

impl<'a> StoredEvent<'a> {
    /// The entry of a run that begins with this event.
    pub(super) fn of_run(id: EventId, seq: u64, parts: StoredEventContent<'a>) -> Self {
        Self {
            i: id.to_string(),
            n: Some(seq),
            e: parts,
            m: Cow::default(),
        }
    }

    /// The number of its first event.
    pub(super) fn first(&self) -> Result<u64, StoreError> {
        required(self.n, "n")
    }

    /// How many events it is.
    pub(super) fn count(&self) -> usize {
        match &self.e {
            StoredEventContent::Status(_) | StoredEventContent::Artifact { .. } => 1,
            StoredEventContent::Parts(parts) => parts.len(),
            StoredEventContent::Chunks(_, _, counts) => {
                counts.iter().fold(0, |sum, it| sum.saturating_add(*it))
            }
        }
    }

    /// Whether each of its events only appends one part to `artifact`.
    pub(super) fn is_run_of(&self, artifact: &StoredArtifact<'_>) -> bool {
        match &self.e {
            StoredEventContent::Parts(_) => true,
            StoredEventContent::Artifact {
                a: Some(a),
                p: true,
                l: false,
                ..
            } => a.p.len() == 1 && self.m.is_empty() && a.is_of(artifact),
            _ => false,
        }
    }

    /// The event of an entry that is not a run.
    pub(super) fn into_logged(self) -> Result<LoggedEvent, StoreError> {
        let event = match self.e {
            StoredEventContent::Status(status) => Event::Status(StatusUpdate {
                status: status.into_status()?,
                metadata: self.m.into_owned(),
            }),
            StoredEventContent::Artifact { a, p, l, .. } => Event::Artifact(ArtifactUpdate {
                artifact: required(a, "a")?.into_artifact()?,
                append: p,
                last_chunk: l,
                metadata: self.m.into_owned(),
            }),
            StoredEventContent::Parts(_) | StoredEventContent::Chunks(..) => {
                return Err(corrupt("a run where one event was expected"));
            }
        };
        Ok(LoggedEvent {
            id: event_id(&self.i)?,
            seq: required(self.n, "n")?,
            event,
        })
    }
}

pub(super) fn event_id(text: &str) -> Result<EventId, StoreError> {
    text.parse().map_err(corrupt)
}
