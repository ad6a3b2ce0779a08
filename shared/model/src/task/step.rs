//! What a turn has met, as the same turn finds it when it runs again: the results of its steps,
//! its waits and saved values, and what it has read.

use super::{Message, Metadata, Timestamp, is_default};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Between the elements of the path of a step: a scope or step, and what it contains.
pub const PATH_SEPARATOR: char = '>';

/// How many outputs each scope has said, by the path of the scope. The turn itself is the
/// scope with the empty path.
pub type OutputCounts = BTreeMap<String, u32>;

/// How a step, a wait or the place of a saved value ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepOutcome {
    /// The step returned this value.
    Value(Value),
    /// The step failed.
    Error(StepError),
    /// The skill dropped the step before it had its result.
    Abandoned,
    /// A wait of the skill is over.
    Waited,
    /// The skill saved a value of the task here.
    Saved,
}

/// The public part of an error, as the result of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepError {
    /// Its code.
    pub code: String,
    /// Its text.
    pub text: String,
    /// Its details.
    #[serde(default, skip_serializing_if = "Metadata::is_empty")]
    pub details: Metadata,
}

impl Default for StepOutcome {
    fn default() -> Self {
        Self::Value(Value::Null)
    }
}

/// The stored result of a step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// How the step ended.
    pub outcome: StepOutcome,
    /// Its position among the steps of its scope, from 1; 0 for a wait or a saved value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ordinal: u32,
    /// Its place in the order of all results of the turn, from 1. An abandoned step has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// A hash of what the step was asked, if that is compared when the turn runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// A hash of what else the step depended on. A difference is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances_hash: Option<String>,
    /// Whether a branch beside it was running when it ended. If that one wins a race, a later run
    /// may never ask for this result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beside_branch: bool,
    /// What the step did to the thread, in order. The final commit of the turn applies it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ThreadOperation>,
}

impl StepOutcome {
    /// Whether the work of a step has ended: a turn that runs again does not do it again.
    #[must_use]
    pub const fn is_progress(&self) -> bool {
        matches!(self, Self::Value(_) | Self::Error(_))
    }
}

impl StepResult {
    /// The place of a saved value in the order of results.
    #[must_use]
    pub fn from_save(number: u64, at: Timestamp) -> Self {
        Self::at_place(StepOutcome::Saved, Some(number), at)
    }

    /// A result without an ordinal, hashes and operations.
    #[must_use]
    pub fn at_place(outcome: StepOutcome, number: Option<u64>, at: Timestamp) -> Self {
        Self {
            outcome,
            number,
            ended_at: at,
            ..Self::default()
        }
    }
}

/// Where a scope was when it saved a value. A run that loads the value there continues behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SavePlace {
    /// The path of the scope.
    pub scope: String,
    /// How many steps, scopes, waits and saved values of each name it had begun.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u32>,
    /// How many steps it had begun.
    pub steps: u32,
    /// How many outputs it had sent.
    pub outputs: u32,
    /// How many events it had added to the thread.
    pub events: u32,
    /// How many operations of the thread it had made.
    pub operations: u32,
    /// How often it had loaded each session value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reads: BTreeMap<String, u32>,
    /// When it saved the value.
    pub at: Timestamp,
}

/// A session value that a turn loaded outside of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRead {
    /// The path of the scope that loaded it.
    pub scope: String,
    /// The key.
    pub key: String,
    /// The value.
    pub value: Option<Value>,
}

/// What a turn loaded outside of steps, by scope and key: each value with how many loads in
/// sequence gave it.
pub type SessionReads = BTreeMap<String, BTreeMap<String, Vec<(u32, Option<Value>)>>>;

/// How often a step that is open was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTries {
    /// How many tries have failed.
    pub count: u32,
    /// The next one does not begin before.
    pub due: Timestamp,
}

/// One change of the state of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadOperation {
    /// Adds the event, unless an event with its id is there.
    Append(Message),
    /// Sets a session value.
    Set {
        /// The path of the scope that made the change, and its number there.
        id: String,
        /// The key of the value.
        key: String,
        /// The value.
        value: Value,
    },
    /// The commit of the step has applied its changes of this session value.
    Applied {
        /// The key of the value.
        key: String,
        /// The changes that it has also applied: the turn made them outside of the step. These
        /// are their ids.
        outside: Vec<String>,
    },
}

/// Whether `path` is below `outer`: what the step or scope `outer` contains.
#[must_use]
pub fn is_below(path: &str, outer: &str) -> bool {
    outer.is_empty() && !path.is_empty()
        || path
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with(PATH_SEPARATOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_rows::each_row;

    #[test]
    fn a_path_is_below_its_scopes_alone() {
        let rows = [
            ("pay#1>charge#1", "pay#1", true),
            ("pay#1>charge#1>x#2", "pay#1", true),
            ("pay#1", "", true),
            ("", "", false),
            ("pay#1", "pay#1", false),
            ("pay#10>charge#1", "pay#1", false),
            ("pay#1", "pay#1>charge#1", false),
        ];
        each_row(rows, |(path, outer, expected)| {
            assert_eq!(is_below(path, outer), expected, "{path} below {outer}");
        });
    }
}
