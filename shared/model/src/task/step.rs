//! The result of a step, as a turn that runs again finds it.

use super::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Between the elements of the path of a step: a scope or step, and what it contains.
pub const PATH_SEPARATOR: char = '>';

/// How many outputs each scope has said, by the path of the scope. The turn itself is the
/// scope with the empty path.
pub type OutputCounts = BTreeMap<String, u32>;

/// The stored result of a completed step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// What the step returned.
    pub value: Value,
    /// Its position among the steps of its scope, from 1.
    pub ordinal: u32,
    /// A hash of what the step was asked, if that is compared when the turn runs again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<String>,
    /// A hash of what else the step depended on. A difference is logged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances_hash: Option<String>,
    /// What the step did to the thread, in order. The final commit of the turn applies it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ThreadOperation>,
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
