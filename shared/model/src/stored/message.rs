//! Messages, parts, artifacts and events in their stored form.

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

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredMessage {
    i: String,
    r: StoredRole,
    #[serde(with = "part_list")]
    p: Vec<StoredPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) c: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) t: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rf: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    x: Vec<String>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Metadata,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
enum StoredRole {
    #[serde(rename = "u")]
    User,
    #[serde(rename = "a")]
    Agent,
}

impl From<&task::Message> for StoredMessage {
    fn from(message: &task::Message) -> Self {
        Self {
            i: message.id.clone(),
            r: match message.role {
                Role::User => StoredRole::User,
                Role::Agent => StoredRole::Agent,
            },
            p: message.parts.iter().map(StoredPart::from).collect(),
            c: message.context_id.as_ref().map(ToString::to_string),
            t: message.task_id.as_ref().map(ToString::to_string),
            rf: message.reference_task_ids.clone(),
            x: message.extensions.clone(),
            m: message.metadata.clone(),
        }
    }
}

impl StoredMessage {
    pub(super) fn into_message(self) -> Result<task::Message, StoreError> {
        Ok(task::Message {
            id: self.i,
            role: match self.r {
                StoredRole::User => Role::User,
                StoredRole::Agent => Role::Agent,
            },
            parts: all(self.p, StoredPart::into_part)?,
            context_id: self.c.map(ContextId::parse).transpose().map_err(corrupt)?,
            task_id: self.t.map(TaskId::parse).transpose().map_err(corrupt)?,
            reference_task_ids: self.rf,
            extensions: self.x,
            metadata: self.m,
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
pub(super) struct StoredPart {
    pub(super) c: StoredContent,
    pub(super) f: Option<String>,
    pub(super) t: Option<String>,
    pub(super) m: Metadata,
}

impl StoredPart {
    pub(super) fn of_text(text: String) -> Self {
        Self {
            c: StoredContent::Text(text),
            f: None,
            t: None,
            m: Metadata::new(),
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
pub(super) enum StoredContent {
    #[serde(rename = "t")]
    Text(String),
    /// Base64 with padding.
    #[serde(rename = "r")]
    Raw(String),
    #[serde(rename = "u")]
    Url(String),
    #[serde(rename = "d")]
    Data(Value),
    #[serde(rename = "b")]
    Stored {
        k: String,
        n: u64,
        h: String,
        /// The id of the upload the bytes came from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        u: Option<String>,
    },
}

impl From<&task::Part> for StoredPart {
    fn from(part: &task::Part) -> Self {
        Self {
            c: match &part.content {
                task::PartContent::Text(text) => StoredContent::Text(text.clone()),
                task::PartContent::Raw(bytes) => StoredContent::Raw(STANDARD.encode(bytes)),
                task::PartContent::Url(url) => StoredContent::Url(url.clone()),
                task::PartContent::Data(data) => StoredContent::Data(data.clone()),
                task::PartContent::Stored(blob) => StoredContent::Stored {
                    k: blob.key.clone(),
                    n: blob.size,
                    h: blob.sha256.clone(),
                    u: blob.upload.clone(),
                },
            },
            f: part.filename.clone(),
            t: part.media_type.clone(),
            m: part.metadata.clone(),
        }
    }
}

impl StoredPart {
    pub(super) fn into_part(self) -> Result<task::Part, StoreError> {
        Ok(task::Part {
            content: match self.c {
                StoredContent::Text(text) => task::PartContent::Text(text),
                StoredContent::Raw(text) => {
                    task::PartContent::Raw(STANDARD.decode(text).map_err(corrupt)?.into())
                }
                StoredContent::Url(url) => task::PartContent::Url(url),
                StoredContent::Data(data) => task::PartContent::Data(data),
                StoredContent::Stored { k, n, h, u } => task::PartContent::Stored(task::Blob {
                    key: k,
                    size: n,
                    sha256: h,
                    upload: u,
                }),
            },
            filename: self.f,
            media_type: self.t,
            metadata: self.m,
        })
    }
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredArtifact {
    pub(super) i: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    d: Option<String>,
    #[serde(with = "part_list")]
    pub(super) p: Vec<StoredPart>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    x: Vec<String>,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Metadata,
}

impl From<&task::Artifact> for StoredArtifact {
    fn from(artifact: &task::Artifact) -> Self {
        Self {
            i: artifact.id.clone(),
            n: artifact.name.clone(),
            d: artifact.description.clone(),
            p: artifact.parts.iter().map(StoredPart::from).collect(),
            x: artifact.extensions.clone(),
            m: artifact.metadata.clone(),
        }
    }
}

impl StoredArtifact {
    /// Whether `self` is the same artifact but for its parts.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        let Self {
            i,
            n,
            d,
            p: _,
            x,
            m,
        } = self;
        *i == other.i && *n == other.n && *d == other.d && *x == other.x && *m == other.m
    }

    /// The artifact with these parts alone.
    pub(super) fn with_parts(&self, parts: Vec<StoredPart>) -> Self {
        Self {
            i: self.i.clone(),
            n: self.n.clone(),
            d: self.d.clone(),
            p: parts,
            x: self.x.clone(),
            m: self.m.clone(),
        }
    }

    pub(super) fn into_artifact(self) -> Result<task::Artifact, StoreError> {
        Ok(task::Artifact {
            id: self.i,
            name: self.n,
            description: self.d,
            parts: all(self.p, StoredPart::into_part)?,
            extensions: self.x,
            metadata: self.m,
        })
    }
}

/// A status. The short form of a task leaves members out and restores them before the
/// status is read.
#[derive(Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) s: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) m: Option<StoredMessage>,
    /// Replaces a message that the text already contains: its index in the history,
    /// or the length of the history for the message of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) r: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) t: Option<i64>,
}

impl From<&task::Status> for StoredStatus {
    fn from(status: &task::Status) -> Self {
        Self {
            s: Some(status.state.as_str().to_owned()),
            m: status.message.as_ref().map(StoredMessage::from),
            r: None,
            t: Some(status.timestamp.as_millis()),
        }
    }
}

impl StoredStatus {
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
pub(super) struct StoredEvent {
    pub(super) i: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) n: Option<u64>,
    pub(super) e: StoredEventContent,
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    m: Metadata,
}

#[derive(Serialize, Deserialize)]
pub(super) enum StoredEventContent {
    #[serde(rename = "s")]
    Status(StoredStatus),
    #[serde(rename = "a")]
    Artifact {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<StoredArtifact>,
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
    Parts(#[serde(with = "part_list")] Vec<StoredPart>),
    /// Events that each append one part to an artifact in the same text: its index, the index
    /// of the first part, and how many the commits appended that follow each other.
    #[serde(rename = "c")]
    Chunks(usize, usize, Vec<usize>),
}

impl StoredEventContent {
    /// One chunk that is neither the first nor the last.
    pub(super) const fn chunk(artifact: StoredArtifact) -> Self {
        Self::Artifact {
            a: Some(artifact),
            r: None,
            p: true,
            l: false,
        }
    }

    /// The parts that the entry adds. If it refers to an artifact, that is `whole`.
    pub(super) fn parts<'a>(&'a self, whole: &'a StoredArtifact) -> Option<&'a [StoredPart]> {
        match self {
            Self::Artifact { a, .. } => Some(&a.as_ref().unwrap_or(whole).p),
            Self::Parts(parts) => Some(parts),
            Self::Chunks(..) | Self::Status(_) => None,
        }
    }
}

impl From<&LoggedEvent> for StoredEvent {
    fn from(logged: &LoggedEvent) -> Self {
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
            m: m.clone(),
        }
    }
}

impl StoredEvent {
    /// The entry of a run that begins with this event.
    pub(super) fn of_run(id: EventId, seq: u64, parts: StoredEventContent) -> Self {
        Self {
            i: id.to_string(),
            n: Some(seq),
            e: parts,
            m: Metadata::new(),
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
    pub(super) fn is_run_of(&self, artifact: &StoredArtifact) -> bool {
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
                metadata: self.m,
            }),
            StoredEventContent::Artifact { a, p, l, .. } => Event::Artifact(ArtifactUpdate {
                artifact: required(a, "a")?.into_artifact()?,
                append: p,
                last_chunk: l,
                metadata: self.m,
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
