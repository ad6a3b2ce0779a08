//! A row of a data set: a message, and what is expected of the agent.

use crate::output::CommandError;
use a2a_lambda::engine::ROUTE_STEPS;
use a2a_lambda::skill::{AgentDefinition, Content};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A line of a data set.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    /// The number of its line, from 1.
    #[serde(skip)]
    pub(super) line: usize,
    text: Option<String>,
    data: Option<Value>,
    pub(super) earlier: Vec<String>,
    pub(super) to: Option<Target>,
    /// `Some(None)` is `null`: a question is right.
    #[serde(deserialize_with = "present")]
    pub(super) skill: Option<Option<String>>,
    pub(super) by: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) equals: Option<Value>,
    pub(super) artifact: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) tokens_below: Option<u64>,
}

/// How a message belongs to those sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    Task,
    Reference,
    Context,
}

fn present<'de, D>(deserializer: D) -> Result<Option<Option<String>>, D::Error>
where
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl Row {
    /// The rows of a file, which the agent can be asked.
    ///
    /// # Errors
    /// When the file cannot be read, or with each line that is no row.
    pub(super) fn read(path: &Path, agent: &AgentDefinition) -> Result<Vec<Self>, CommandError> {
        let name = path.display();
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| format!("failed to read {name}: {error}"))?;
        let (mut rows, mut faults) = (Vec::new(), String::new());
        let lines = text.lines().zip(1..);
        // Editors of Windows begin a file with a mark.
        let lines = lines.map(|(text, line)| (text.trim_start_matches('\u{feff}'), line));
        for (text, line) in lines.filter(|(text, _)| !text.trim().is_empty()) {
            let row = serde_json::from_str::<Self>(text).map(|row| Self { line, ..row });
            let row_faults = match &row {
                Ok(row) => row.faults(agent),
                // It has one line, which has another number here.
                Err(error) => vec![error.to_string().replace(" line 1 ", " ")],
            };
            rows.extend(row);
            let texts = row_faults
                .iter()
                .map(|why| format!("\n  line {line}: {why}"));
            faults.extend(texts);
        }
        if rows.is_empty() && faults.is_empty() {
            let example = r#"{"text": "hi", "contains": "hello"}"#;
            faults = format!("\n  there is no row: write JSON objects, such as {example}");
        }
        match faults.is_empty() {
            true => Ok(rows),
            false => Err(
                format!("{name}: nothing was run, since its rows cannot be used{faults}").into(),
            ),
        }
    }

    /// Why it is no row for this agent.
    fn faults(&self, agent: &AgentDefinition) -> Vec<String> {
        let skills = agent.manifest().skills.iter();
        let ids: Vec<&str> = skills.map(|skill| skill.metadata.id).collect();
        let mut faults = Vec::new();
        if self.text.is_some() == self.data.is_some() {
            faults.push("a row has either `text` or `data`".to_owned());
        }
        if self.to.is_some() && self.earlier.is_empty() {
            faults.push("`to` needs texts in `earlier`".to_owned());
        }
        if let Some(Some(id)) = &self.skill
            && !ids.contains(&id.as_str())
        {
            let ids = ids.join("`, `");
            faults.push(format!(
                "`skill` is `{id}`, expected `null` or one of `{ids}`"
            ));
        }
        if let Some(by) = self
            .by
            .as_ref()
            .filter(|by| !ROUTE_STEPS.contains(&by.as_str()))
        {
            let steps = ROUTE_STEPS.join("`, `");
            faults.push(format!("`by` is `{by}`, expected one of `{steps}`"));
        }
        if self.skill.is_none() && self.by.is_none() && !self.is_sent() {
            faults.push(
                "nothing is expected: add `skill`, `by`, `contains`, `equals`, `artifact`, \
                 `tool` or `tokens_below`"
                    .to_owned(),
            );
        }
        faults
    }

    /// Whether the message is sent. For its skill alone it is not.
    pub(super) const fn is_sent(&self) -> bool {
        self.contains.is_some()
            || self.equals.is_some()
            || self.artifact.is_some()
            || self.tool.is_some()
            || self.tokens_below.is_some()
    }

    pub(super) fn content(&self) -> Content {
        match (&self.text, &self.data) {
            (_, Some(data)) => data.clone().into(),
            (text, None) => text.clone().unwrap_or_default().into(),
        }
    }

    /// The message as a text.
    pub(super) fn label(&self) -> String {
        let data = self.data.as_ref().map(Value::to_string);
        data.or_else(|| self.text.clone()).unwrap_or_default()
    }
}
