//! The file of an item: a head of a few lines, and the content as it was given.
//!
//! ```text
//! ---
//! kind: "adr"
//! status: "accepted"
//! title: "Use DynamoDB"
//! summary: "One table for all tasks."
//! tags: ["storage"]
//! ---
//! # Use DynamoDB
//! …
//! ```
//!
//! Each line of the head is a name and a JSON value. This is also YAML, so that the usual
//! tools show it, but reading it needs no parser of YAML. One file has everything about an
//! item: a diff shows a change of the status beside the content, and a rename is one rename.
//! Layer, scope and path are the name of the file.

#[cfg(test)]
mod tests;

use super::error::KnowledgeError;
use super::path::ItemPlace;
use gix_hash::ObjectId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most bytes of a content.
pub(crate) const CONTENT_MAX: usize = 256 * 1024;
/// The most characters of a title that is taken from a content.
const TITLE_MAX: usize = 200;
/// The most characters of a summary that is taken from a content.
const SUMMARY_MAX: usize = 300;
/// The line before and behind the head.
const FENCE: &str = "---\n";

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemKind {
    /// The record of a decision.
    Adr,
    /// A rule, with constraints.
    Policy,
    /// A solution to use again.
    Pattern,
    /// A specification.
    Spec,
    /// What was learned from work that is done.
    Hindsight,
}

/// How far an item has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemStatus {
    /// Being written.
    Draft,
    /// Waits for a decision.
    Proposed,
    /// In force.
    Accepted,
    /// No longer in force.
    Deprecated,
    /// Replaced by another item.
    Superseded,
    /// Decided against.
    Rejected,
}

impl ItemStatus {
    /// Whether an item of this status may get the status `to`.
    pub(crate) const fn may_become(self, to: Self) -> bool {
        match self {
            Self::Draft => matches!(to, Self::Proposed),
            Self::Proposed => matches!(to, Self::Accepted | Self::Rejected),
            Self::Accepted => matches!(to, Self::Deprecated | Self::Superseded),
            Self::Deprecated | Self::Superseded | Self::Rejected => false,
        }
    }
}

/// The head of the file of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemHead {
    /// What the item is.
    pub(crate) kind: ItemKind,
    /// How far it has come.
    pub(crate) status: ItemStatus,
    /// One line that names it.
    pub(crate) title: String,
    /// A sentence or two about it.
    #[serde(default)]
    pub(crate) summary: String,
    /// Its tags.
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    /// The file that replaces a superseded item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) superseded_by: Option<String>,
}

/// An item as the repository has it. Everything but the content is the item's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredItem {
    /// Its layer, scope and path.
    pub(crate) place: ItemPlace,
    /// The head of its file.
    pub(crate) head: ItemHead,
    /// Its content.
    pub(crate) content: String,
    /// The last commit that changed it.
    pub(crate) commit: ObjectId,
}

/// The file of an item is not one that this program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ItemError {
    /// The file is not text.
    #[error("the file is not UTF-8")]
    NotText,
    /// The file has no line `---` at its begin, or none behind the head.
    #[error("the file has no head between two lines `---`")]
    NoHead,
    /// A line of the head is not a name and a JSON value, or its name is there twice.
    #[error("line {0} of the head is not a new name and a JSON value")]
    Line(usize),
    /// A value is missing or has a wrong type.
    #[error("the head lacks a value or has a wrong one")]
    Value,
}

impl ItemHead {
    /// Whether the item is of this kind, and accepted.
    pub(crate) fn is_in_force(&self, kind: ItemKind) -> bool {
        self.kind == kind && self.status == ItemStatus::Accepted
    }

    /// The file with this head and the content, which is not changed.
    ///
    /// # Errors
    /// [`KnowledgeError::TooLong`] for a content above [`CONTENT_MAX`].
    pub(crate) fn file(&self, content: &str) -> Result<Vec<u8>, KnowledgeError> {
        if content.len() > CONTENT_MAX {
            return Err(KnowledgeError::TooLong {
                field: "content",
                bytes: content.len(),
                most: CONTENT_MAX,
            });
        }
        let fault = |cause: serde_json::Error| KnowledgeError::Encode(cause.into());
        let mut lines = vec![
            ("kind", serde_json::to_string(&self.kind).map_err(fault)?),
            (
                "status",
                serde_json::to_string(&self.status).map_err(fault)?,
            ),
            ("title", serde_json::to_string(&self.title).map_err(fault)?),
            (
                "summary",
                serde_json::to_string(&self.summary).map_err(fault)?,
            ),
            ("tags", serde_json::to_string(&self.tags).map_err(fault)?),
        ];
        if let Some(other) = &self.superseded_by {
            lines.push(("supersededBy", serde_json::to_string(other).map_err(fault)?));
        }
        let mut file = FENCE.to_owned();
        for (name, value) in lines {
            file.extend([name, ": ", &value, "\n"]);
        }
        file.extend([FENCE, content]);
        Ok(file.into_bytes())
    }

    /// Reads a file: its head, and its content.
    ///
    /// # Errors
    /// [`ItemError`] says what of the head cannot be read.
    pub(crate) fn parse(file: &[u8]) -> Result<(Self, &str), ItemError> {
        let text = std::str::from_utf8(file).map_err(|_| ItemError::NotText)?;
        let mut rest = text.strip_prefix(FENCE).ok_or(ItemError::NoHead)?;
        let mut values = Map::new();
        for number in 1.. {
            if let Some(content) = rest.strip_prefix(FENCE) {
                let head = serde_json::from_value(Value::Object(values));
                return Ok((head.map_err(|_| ItemError::Value)?, content));
            }
            let (line, next) = rest.split_once('\n').ok_or(ItemError::NoHead)?;
            let (name, value) = line.split_once(": ").ok_or(ItemError::Line(number))?;
            let value = serde_json::from_str(value).map_err(|_| ItemError::Line(number))?;
            if values.insert(name.to_owned(), value).is_some() {
                return Err(ItemError::Line(number));
            }
            rest = next;
        }
        Err(ItemError::NoHead)
    }
}

/// A title and a summary for a content without them: its first heading, and its first
/// paragraph. Without a heading the title is the name of the file.
pub(crate) fn describe(place: &ItemPlace, content: &str) -> (String, String) {
    let mut lines = content.lines().map(str::trim);
    let heading = lines.clone().find_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then_some(title)
    });
    let file = place.segments().last().unwrap_or_default();
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let first = lines.by_ref().find(is_text).unwrap_or_default();
    let others = lines.take_while(is_text);
    let paragraph = std::iter::once(first).chain(others).collect::<Vec<_>>();
    (
        line(heading.unwrap_or(stem), TITLE_MAX),
        line(&paragraph.join(" "), SUMMARY_MAX),
    )
}

/// The text as one line of at most `most` characters.
fn line(text: &str, most: usize) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let joint = words.join(" ");
    match joint.char_indices().nth(most) {
        None => joint,
        Some(_) => joint
            .chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}
