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
use super::path::ItemLocation;
use gix_hash::ObjectId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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

display_serialized!(ItemStatus);

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
    pub(crate) location: ItemLocation,
    /// The head of its file.
    pub(crate) head: ItemHead,
    /// Its content.
    pub(crate) content: String,
    /// The last commit that changed it.
    pub(crate) commit: ObjectId,
}

impl ItemHead {
    /// The file with this head and the content, which is not changed.
    pub(crate) fn file(&self, content: &str) -> Vec<u8> {
        let mut lines = vec![
            ("kind", json!(self.kind)),
            ("status", json!(self.status)),
            ("title", json!(self.title)),
            ("summary", json!(self.summary)),
            ("tags", json!(self.tags)),
        ];
        lines.extend(
            self.superseded_by
                .iter()
                .map(|by| ("supersededBy", json!(by))),
        );
        let mut file = FENCE.to_owned();
        for (name, value) in lines {
            file.extend([name, ": ", &value.to_string(), "\n"]);
        }
        file.extend([FENCE, content]);
        file.into_bytes()
    }

    /// Reads a file: its head, and its content.
    ///
    /// # Errors
    /// [`KnowledgeError::Item`] for a file that [`Self::file`] does not write.
    pub(crate) fn parse(file: &[u8]) -> Result<(Self, &str), KnowledgeError> {
        let text = std::str::from_utf8(file).map_err(|_| KnowledgeError::Item("no UTF-8"))?;
        let no_head = || KnowledgeError::Item("no head between two lines `---`");
        let no_line = || KnowledgeError::Item("a line of the head has no new name or no JSON");
        let mut rest = text.strip_prefix(FENCE).ok_or_else(no_head)?;
        let mut values = Map::new();
        loop {
            if let Some(content) = rest.strip_prefix(FENCE) {
                let head = serde_json::from_value(Value::Object(values));
                let head = head.map_err(|_| KnowledgeError::Item("a value is missing or wrong"))?;
                return Ok((head, content));
            }
            let (line, next) = rest.split_once('\n').ok_or_else(no_head)?;
            let (name, value) = line.split_once(": ").ok_or_else(no_line)?;
            let value = serde_json::from_str(value).map_err(|_| no_line())?;
            if values.insert(name.to_owned(), value).is_some() {
                return Err(no_line());
            }
            rest = next;
        }
    }
}

/// A title and a summary for a content without them: its first heading, and its first
/// paragraph. Without a heading the title is the name of the file.
pub(crate) fn describe(location: &ItemLocation, content: &str) -> (String, String) {
    let mut lines = content.lines().map(str::trim);
    let heading = lines.clone().find_map(|line| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len() && title.starts_with(' ')).then_some(title)
    });
    let file = location.segments().last().unwrap_or_default();
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
pub(crate) fn line(text: &str, most: usize) -> String {
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
