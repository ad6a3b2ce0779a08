//! The command `eval-router`: compares the skills that the router chooses with those that a
//! file names.

use crate::agents::Agents;
use a2a_lambda::auth::Caller;
use a2a_lambda::engine::{CallBudget, Engine, EngineError, RoutePreview};
use a2a_lambda::runtime::{Runtime, RuntimeError};
use a2a_lambda::settings::{Environment, Routing, Settings, SettingsError, Source};
use a2a_lambda::skill::AgentBuildError;
use a2a_lambda::task::{
    A2aError, Generation, IdError, Message, Metadata, Owner, Part, SendCommand, SendMode, Sent,
    Subject, TenantId,
};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file of texts and skills.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EvalRouter {
    /// JSON lines: `{"text": "…", "skill": "id"}`, and `null` where a question is right. `by` is
    /// the step that has to decide; with `ask` only a model may choose the skill. `data` in place of `text` is a data part; `earlier` are texts
    /// sent before, and `to` says how the last message belongs to them: `task`, `reference` or
    /// `context`.
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

/// A message and the skill that it should get.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteCase {
    text: Option<String>,
    data: Option<Value>,
    skill: Option<String>,
    by: Option<String>,
    #[serde(default)]
    earlier: Vec<String>,
    to: Option<Target>,
}

/// How a message belongs to those sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    Task,
    Reference,
    Context,
}

impl RouteCase {
    fn content(&self) -> Vec<Part> {
        let text = self.text.as_deref().map(Part::text);
        text.into_iter()
            .chain(self.data.clone().map(Part::data))
            .collect()
    }

    /// The message on one line.
    fn label(&self) -> String {
        match (&self.text, &self.data) {
            (Some(text), _) => text.replace(char::is_control, " "),
            (None, Some(data)) => data.to_string(),
            (None, None) => String::new(),
        }
    }

    /// Sends the earlier messages, each as a task of its own in one context, and returns the
    /// message itself.
    async fn message(&self, engine: &Engine, caller: &Caller) -> Result<Message, EngineError> {
        let mut message = Message::from_user("m-last", self.content());
        let mut tasks = Vec::new();
        for (number, text) in self.earlier.iter().enumerate() {
            let earlier = Message::from_user(format!("m-{number}"), vec![Part::text(text)]);
            let earlier = Message {
                context_id: message.context_id.clone(),
                ..earlier
            };
            let send = engine.send(caller, command(earlier), CallBudget::until(None));
            if let Sent::Task(task) = send.await? {
                message.context_id = Some(task.context_id.clone());
                tasks.push(task.id.clone());
            }
        }
        match self.to {
            Some(Target::Task) => message.task_id = tasks.pop(),
            Some(Target::Reference) => {
                message.reference_task_ids = tasks.iter().map(ToString::to_string).collect();
            }
            Some(Target::Context) | None => {}
        }
        Ok(message)
    }
}

fn command(message: Message) -> SendCommand {
    SendCommand {
        message,
        client_task_id: None,
        mode: SendMode::Blocking,
        history_length: 0,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
        idempotency_key: None,
    }
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

/// Routes each message of the file, in memory and each for a caller of its own; returns the
/// table with a line for each one.
///
/// # Errors
/// [`EvalRouterError`] when the file or the agent cannot be used.
pub(crate) async fn run(options: &EvalRouter, agents: &Agents) -> Result<String, EvalRouterError> {
    let cases = cases(&options.file)?;
    let settings = Settings::read(&Unserved)?;
    let agent = agents.named(options.agent.as_deref());
    let agent = agent.build(&settings).map_err(EvalRouterError::Agent)?;
    let has_model = settings.model.is_some() && settings.routing != Routing::Never;
    let runtime = Runtime::builder(agent, settings).build()?;
    let mut table = "result  decided by  skill (expected)  text\n".to_owned();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let route = route(runtime.engine(), case, number);
        let preview = route.await.map_err(|source| EvalRouterError::Route {
            text: case.label(),
            source,
        })?;
        // With a model the fallback answers in place of the question.
        let choice = preview.skill.filter(|_| preview.how != "fallback");
        let choice = choice.map(|id| id.to_string());
        // The rules ask where a model may decide.
        let asks = case.by.as_deref() == Some("ask");
        let skill = case.skill.as_ref().filter(|_| has_model || !asks);
        let is_step = case
            .by
            .as_ref()
            .is_none_or(|by| *by == preview.how || (asks && has_model));
        let result = match (&choice, choice.as_ref() == skill) {
            (_, true) if !is_step => "step",
            (_, true) => "hit",
            (None, false) => "asked",
            (Some(_), false) => "miss",
        };
        *counts.entry(result.to_owned()).or_default() += 1;
        let text_of = |skill: Option<&str>| skill.unwrap_or("-").to_owned();
        let skill = text_of(skill.map(String::as_str));
        // Writing to a text never fails.
        let _written = writeln!(
            table,
            "{result:6}  {:10}  {} ({skill})  {}",
            preview.how,
            text_of(choice.as_deref()),
            case.label()
        );
        *counts.entry(preview.how).or_default() += 1;
    }
    let counts: Vec<String> = counts
        .iter()
        .map(|(word, count)| format!("{word} {count}"))
        .collect();
    let _written = writeln!(table, "\n{}", counts.join(", "));
    Ok(table)
}

async fn route(
    engine: &Engine,
    case: &RouteCase,
    number: usize,
) -> Result<RoutePreview, EngineError> {
    let id = |error: IdError| EngineError::from(A2aError::invalid("id", error.to_string()));
    let owner = Owner {
        tenant: TenantId::parse("eval").map_err(id)?,
        subject: Subject::parse(format!("case-{number}")).map_err(id)?,
    };
    let caller = Caller::behind(&owner, None);
    let message = Box::pin(case.message(engine, &caller)).await?;
    engine.preview_route(&caller, command(message)).await
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

    /// The lines were written by others than the author of the router.
    #[tokio::test]
    async fn each_message_of_the_evaluation_reaches_its_skill_by_the_expected_rule() {
        let file = PathBuf::from(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../eval/router.jsonl"
        ));
        let options = EvalRouter { file, agent: None };
        let table = run(&options, &agents()).await.unwrap();
        let wrong: Vec<&str> = table
            .lines()
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| !line.starts_with("hit "))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
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
