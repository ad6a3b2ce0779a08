//! The rows of traces: what turns did, for the author of an agent.
//!
//! A program on the author's machine gives the engine a recorder. Deployed functions have none,
//! so no content leaves a turn there. A value is cut where it is recorded: a large one costs
//! little.

use super::AgentError;
use a2a_lambda_model::task::{TaskKey, Timestamp, WriteId};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// The most bytes of JSON that a row has of one value.
const CONTENT: usize = 128 * 1024;
/// The bytes of a longer value that it has.
const HEAD: usize = 8 * 1024;

/// Takes the rows of traces. It does not wait, and drops what it cannot take. A trace is that of
/// one incarnation of one task of one owner: another caller may use the same id, and so may a
/// later task.
pub trait RecordTrace: Send + Sync {
    /// The time.
    fn now(&self) -> Timestamp;

    /// Takes a row of a task: as it begins, without its end, and again as it ends, with the
    /// content that is new.
    fn record(&self, task: &TaskKey, incarnation: &WriteId, row: TraceRow);

    /// Removes the trace of a task.
    fn forget(&self, task: &TaskKey, incarnation: &WriteId);
}

/// Something that a turn did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TraceRow {
    /// Its id, unique within its task.
    pub id: String,
    /// The row that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// What it is, such as `model`, `tool` or `write`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// When it began, in milliseconds since 1970.
    pub start: i64,
    /// When it ended; `None` while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<i64>,
    /// What is known of it, without content.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
    /// What it got and gave.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub content: Map<String, Value>,
}

impl TraceRow {
    /// A row that begins at `start`.
    pub(crate) fn new(id: String, kind: &'static str, name: &str, start: i64) -> Self {
        Self {
            id,
            kind,
            name: name.to_owned(),
            start,
            ..Self::default()
        }
    }

    /// Whether a trace begins with it: a turn that begins, or the first write of a task. Any other
    /// row of a task without a trace is late: the task is deleted.
    #[must_use]
    pub fn begins_trace(&self) -> bool {
        let is_created = self.facts.get("version").and_then(Value::as_u64) == Some(1);
        (self.kind == "turn" && self.end.is_none()) || (self.kind == "write" && is_created)
    }

    /// Adds a fact.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds the members of `facts`.
    pub(crate) fn add_facts(&mut self, facts: Value) {
        if let Value::Object(facts) = facts {
            self.facts.extend(facts);
        }
    }

    /// Adds what was given as content `name`, or the code of its error.
    pub(crate) fn note(&mut self, name: &str, result: Result<&impl Serialize, &AgentError>) {
        match result {
            Ok(value) => self.add(name, value),
            Err(error) => self.fact("error", error.code().as_str()),
        }
    }

    /// Adds content. A value of more than 128 KiB becomes its first 8 KiB as text.
    pub fn add(&mut self, name: &str, value: &impl Serialize) {
        let mut text = Bounded(Vec::new());
        let value = match serde_json::to_writer(&mut text, value) {
            Ok(()) => serde_json::from_slice(&text.0).unwrap_or_default(),
            Err(_) => {
                self.fact("cut", name);
                let head = text.0.get(..HEAD).unwrap_or(&text.0);
                String::from_utf8_lossy(head).into()
            }
        };
        self.content.insert(name.to_owned(), value);
    }
}

/// The first bytes of a value. Writing more is an error.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let space = CONTENT.saturating_sub(self.0.len());
        let start = bytes.get(..space).unwrap_or(bytes);
        self.0.extend_from_slice(start);
        match start.len() {
            0 if !bytes.is_empty() => Err(io::ErrorKind::FileTooLarge.into()),
            count => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
