//! The command `eval-router`: compares the skills that the router chooses with those that a
//! file names.

use crate::agents::Agents;
use a2a_lambda::engine::EngineError;
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Environment, Settings, SettingsError, Source};
use a2a_lambda::skill::AgentBuildError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file of texts and skills.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EvalRouter {
    /// JSON lines: `{"text": "…", "skill": "id"}`, and `null` where a question is right.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Whose skills.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

/// Why the router was not evaluated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EvalRouterError {
    /// The file cannot be read.
    #[error("failed to read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A line is no case.
    #[error("{}, line {line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
    /// The agent cannot be built.
    #[error("failed to build the agent: {0}")]
    Agent(#[source] AgentBuildError),
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The runtime cannot be built.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A text cannot be routed.
    #[error("failed to route `{text}`: {source}")]
    Route {
        /// The text.
        text: String,
        /// The cause.
        source: EngineError,
    },
}

/// A text and the skill that it should get.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteCase {
    text: String,
    skill: Option<String>,
}

/// The settings of the environment for a program that serves no caller.
struct Unserved;

impl Source for Unserved {
    fn get(&self, name: &str) -> Option<String> {
        match name {
            "A2A_AUTH" => Some("dev".to_owned()),
            "A2A_PUBLIC_URL" => Some("http://localhost".to_owned()),
            name => Environment.get(name),
        }
    }
}

/// Routes each text of the file; returns the table with a line for each one.
///
/// # Errors
/// [`EvalRouterError`] when the file or the agent cannot be used.
pub(crate) async fn run(options: &EvalRouter, agents: &Agents) -> Result<String, EvalRouterError> {
    let cases = cases(&options.file)?;
    let settings = Settings::read(&Unserved)?;
    let agent = agents.named(options.agent.as_deref());
    let agent = agent.build(&settings).map_err(EvalRouterError::Agent)?;
    let runtime = Runtime::builder(agent, settings).build()?;
    let mut table = "result  decided by  skill (expected)  text\n".to_owned();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for RouteCase { text, skill } in cases {
        let preview = runtime.engine().preview_route(&text).await;
        let preview = preview.map_err(|source| EvalRouterError::Route {
            text: text.clone(),
            source,
        })?;
        let choice = preview.skill.map(|id| id.to_string());
        let result = match (&choice, choice == skill) {
            (_, true) => "hit",
            (None, false) => "asked",
            (Some(_), false) => "miss",
        };
        *counts.entry(result).or_default() += 1;
        *counts.entry(preview.how).or_default() += 1;
        let text_of = |skill: Option<String>| skill.unwrap_or_else(|| "-".to_owned());
        let (choice, skill) = (text_of(choice), text_of(skill));
        // Writing to a text never fails.
        let _written = writeln!(
            table,
            "{result:6}  {:10}  {choice} ({skill})  {text}",
            preview.how
        );
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    let _written = writeln!(table, "\n{}", counts.join(", "));
    Ok(table)
}

fn cases(path: &Path) -> Result<Vec<RouteCase>, EvalRouterError> {
    let text = fs::read_to_string(path).map_err(|source| EvalRouterError::File {
        path: path.to_owned(),
        source,
    })?;
    let lines = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| !line.trim().is_empty());
    let cases = lines.map(|(line, number)| {
        serde_json::from_str(line).map_err(|source| EvalRouterError::Line {
            path: path.to_owned(),
            line: number,
            source,
        })
    });
    cases.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::LocalAgent;

    fn agents() -> Agents {
        Agents::new(LocalAgent::new("reference", |_| reference_agent::agent()))
    }

    async fn evaluated(text: &str) -> Result<String, EvalRouterError> {
        let folder = tempfile();
        let file = folder.join("router.jsonl");
        fs::write(&file, text).unwrap();
        let options = EvalRouter { file, agent: None };
        let table = run(&options, &agents()).await;
        fs::remove_dir_all(folder).unwrap();
        table
    }

    fn tempfile() -> PathBuf {
        let name = format!("eval-router-{:?}", std::thread::current().id());
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[tokio::test]
    async fn table_has_hits_misses_and_questions_with_their_step() {
        let lines = [
            r#"{"text": "/echo hi", "skill": "echo"}"#,
            r#"{"text": "/echo hi", "skill": "add"}"#,
            r#"{"text": "hm", "skill": "echo"}"#,
        ];
        let table = evaluated(&lines.join("\n")).await.unwrap();
        for line in [
            "hit     command     echo (echo)  /echo hi",
            "miss    command     echo (add)  /echo hi",
            "asked   ask         - (echo)  hm",
            "ask 1, asked 1, command 2, hit 1, miss 1",
        ] {
            assert!(table.contains(line), "{table}");
        }
    }

    #[tokio::test]
    async fn line_that_is_no_case_is_named() {
        let error = evaluated("{\"text\": \"x\", \"skill\": null}\n{\"txt\": 1}").await;
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("line 2: unknown field `txt`")
        );
    }

    #[test]
    fn cases_of_this_repository_name_skills_of_the_reference_agent() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/router.jsonl");
        let agent = reference_agent::agent().unwrap();
        let skills = &agent.manifest().skills;
        for case in cases(&file).unwrap() {
            let Some(id) = case.skill else { continue };
            assert!(skills.iter().any(|skill| skill.metadata.id == id), "{id}");
        }
    }
}
