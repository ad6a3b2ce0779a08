//! The tasks of a caller as rows of a list, with what A2A does not list: skill, first words, time.
//!
//! A search looks at the texts of each task, so it reads the tasks one after the other. One
//! request reads a thousand at most, says how many, and names the position of the next.

use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::store::records::RecordReader;
use a2a_lambda::store::{ListPosition, Projection, RecordPage, RecordQuery, StoreError};
use a2a_lambda::task::{
    Artifact, ContextId, Message, Owner, Part, PartContent, TaskRecord, TaskState, Timestamp,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::iter;

/// Tasks that one read of a list looks at.
pub(crate) const PAGE: usize = 100;
/// Reads of one request. The next request continues.
pub(crate) const READS: usize = 10;
/// Rows of one answer.
const ROWS: usize = 100;
/// Bytes of messages and artifacts that are read of a task that has grown.
const CONTENT: usize = 64 * 1024;
/// Characters that name a task by a part of its id.
const ID_MIN: usize = 6;
/// The groups of states that a list counts.
const GROUPS: [&str; 4] = ["working", "needs", "failed", "ended"];
/// Characters of a text that a row shows.
const SHOWN: usize = 200;

/// What a list shows.
#[derive(Debug, Default)]
pub struct RowFilter {
    context: Option<ContextId>,
    group: String,
    skill: String,
    words: Vec<String>,
    after: Option<ListPosition>,
    is_brief: bool,
}

impl RowFilter {
    /// The filter in a query: `group`, `skill`, `context`, `after`, `words` in hexadecimal, and
    /// `brief` for one read. `None` for a malformed position.
    pub fn parse(query: &str) -> Option<Self> {
        let mut filter = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "group" => value.clone_into(&mut filter.group),
                "skill" => value.clone_into(&mut filter.skill),
                "brief" => filter.is_brief = true,
                "context" => filter.context = ContextId::parse(value).ok(),
                "after" => filter.after = Some(position(value)?),
                "words" => {
                    let text = hex::decode(value).unwrap_or_default();
                    let text = String::from_utf8_lossy(&text).to_lowercase();
                    filter.words = text.split_whitespace().map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        Some(filter)
    }

    /// Whether skill and texts of the task are those that the filter names.
    fn takes(&self, record: &TaskRecord) -> bool {
        let skill = record.skill_name().unwrap_or_default().to_owned();
        if !self.skill.is_empty() && self.skill != skill {
            return false;
        }
        let mut texts = iter::once(skill)
            .chain(record.history.iter().map(text))
            .chain(record.status.message.iter().map(text))
            .chain(record.artifacts.iter().map(artifact_text))
            .map(|text| text.to_lowercase());
        let mut missing: Vec<&str> = self.words.iter().map(String::as_str).collect();
        // A short word is in many ids by chance.
        let id = record.id.as_str();
        missing.retain(|word| word.len() < ID_MIN || !id.contains(word));
        while !missing.is_empty() {
            let Some(text) = texts.next() else {
                return false;
            };
            missing.retain(|word| !text.contains(word));
        }
        true
    }
}

/// The rows after the position of the filter, the newest first. The first answer also counts
/// the tasks of each group that it has read.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub async fn list(
    store: &RecordReader,
    owner: &Owner,
    mut filter: RowFilter,
) -> Result<Value, StoreError> {
    let now = SystemClock.now();
    let is_first = filter.after.is_none();
    let (mut rows, mut count) = (Vec::new(), 0_usize);
    let mut groups = BTreeMap::from(GROUPS.map(|name| (name, 0_u32)));
    let mut after = filter.after.take();
    let mut next = None;
    // Messages and artifacts, as far as they are short.
    let projection = Projection {
        history_length: ROWS,
        artifacts: true,
        bytes: CONTENT,
    };
    for _ in 0..READS {
        let page = tasks_after(store, owner, filter.context.as_ref(), after, now).await?;
        count = count.saturating_add(page.records.len());
        for head in page.records {
            let position = ListPosition::of(&head);
            let Some(task) = store.project(head, projection, now).await? else {
                continue;
            };
            let record = task.record;
            if !filter.takes(&record) {
                continue;
            }
            let group = group(record.state());
            groups
                .entry(group)
                .and_modify(|count| *count = count.saturating_add(1));
            let is_shown = filter.group.is_empty() || filter.group == group;
            if is_shown && rows.len() < ROWS {
                rows.push(row(&record, now));
                next = (rows.len() == ROWS).then_some(position);
            }
        }
        after = page.next;
        if after.is_none() || filter.is_brief || (rows.len() == ROWS && !is_first) {
            break;
        }
    }
    let is_whole = after.is_none();
    let next = next.or(after);
    Ok(json!({
        "rows": rows,
        "next": next.as_ref().map(position_text),
        "searched": count,
        "isWhole": is_whole,
        "groups": groups,
    }))
}

/// The next hundred tasks of `owner` after a position, the newest first; of one context if it is
/// named.
///
/// # Errors
/// [`StoreError`] when the table does not answer.
pub async fn tasks_after(
    store: &RecordReader,
    owner: &Owner,
    context_id: Option<&ContextId>,
    after: Option<ListPosition>,
    now: Timestamp,
) -> Result<RecordPage, StoreError> {
    let query = RecordQuery {
        context_id: context_id.cloned(),
        state: None,
        status_after: None,
        after,
        limit: PAGE,
        count_limit: 0,
        now,
    };
    store.list(owner, &query).await
}

/// The position of a list in a query, which cannot contain `#`: it has a `,` there. `None` if it is
/// malformed.
pub fn position(text: &str) -> Option<ListPosition> {
    ListPosition::parse(&text.replacen(',', "#", 1)).ok()
}

pub(crate) fn position_text(position: &ListPosition) -> String {
    position.to_string().replacen('#', ",", 1)
}

fn row(record: &TaskRecord, now: Timestamp) -> Value {
    let title = record.history.first().map(text).unwrap_or_default();
    let mut answers = record.status.message.iter().map(text);
    let mut artifacts = record.artifacts.iter().map(artifact_text);
    let says = answers.find(|text| !text.is_empty());
    let says = says.or_else(|| artifacts.find(|text| !text.is_empty()));
    let transitions = record.transitions.iter();
    let transitions =
        transitions.map(|it| json!({"state": it.state.as_str(), "at": it.at.as_millis()}));
    json!({
        "task": record.id.as_str(),
        "context": record.context_id.as_str(),
        "skill": record.skill_name(),
        "state": record.state().as_str(),
        "title": excerpt(&title),
        // The lines of a Markdown text are those of its blocks.
        "says": says.map(|text| text.chars().take(SHOWN).collect::<String>()),
        "turn": record.turn,
        "tookMs": took(record, now),
        "createdAt": record.created_at.as_millis(),
        "updatedAt": record.status.timestamp.as_millis(),
        "expiresAt": record.expires_at.as_millis(),
        "transitions": transitions.collect::<Vec<_>>(),
    })
}

/// The milliseconds in which the task was not at rest.
pub(crate) fn took(record: &TaskRecord, now: Timestamp) -> i64 {
    let transitions = &record.transitions;
    let ends = transitions.iter().skip(1).map(|it| it.at).chain([now]);
    let spans = transitions.iter().zip(ends);
    let work = spans.filter(|(it, _)| !it.state.is_at_rest());
    work.map(|(it, end)| end.as_millis().saturating_sub(it.at.as_millis()))
        .sum()
}

const fn group(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted | TaskState::Working => "working",
        TaskState::InputRequired | TaskState::AuthRequired => "needs",
        TaskState::Failed | TaskState::Rejected => "failed",
        TaskState::Completed | TaskState::Canceled => "ended",
    }
}

/// What a message says.
fn text(message: &Message) -> String {
    words(&message.parts)
}

fn artifact_text(artifact: &Artifact) -> String {
    Some(words(&artifact.parts))
        .filter(|text| !text.is_empty())
        .or_else(|| artifact.name.clone())
        .unwrap_or_default()
}

fn words(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.clone()),
        PartContent::Data(data) => Some(data_words(data)),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Data for people: `cents 2510, number 3`.
fn data_words(data: &Value) -> String {
    let join = |words: Vec<String>| words.join(", ");
    match data {
        Value::Object(members) => {
            let members = members.iter();
            join(
                members
                    .map(|(name, it)| format!("{name} {}", data_words(it)))
                    .collect(),
            )
        }
        Value::Array(items) => join(items.iter().map(data_words).collect()),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first characters of the text, in one line.
fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    start.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{RowFilter, data_words, excerpt};
    use serde_json::json;

    #[test]
    fn words_of_a_search_come_in_any_script() {
        let query = format!("skill=echo&words={}", hex::encode("Größe  東京"));
        let filter = RowFilter::parse(&query).unwrap();
        assert_eq!(filter.words, ["größe", "東京"]);
        assert_eq!(filter.skill, "echo");
        assert!(RowFilter::parse("after=nothing").is_none());
    }

    #[test]
    fn data_is_shown_in_words() {
        let data = json!({"cents": 2510, "number": 3, "to": {"city": "Rome"}, "tags": ["a", "b"]});
        let words = "cents 2510, number 3, tags a, b, to city Rome";
        assert_eq!(data_words(&data), words);
    }

    #[test]
    fn a_row_is_one_line_of_bounded_length() {
        assert_eq!(excerpt("a\n\n b\tc"), "a b c");
        assert_eq!(excerpt(&"ü".repeat(1000)).chars().count(), 200);
    }
}
