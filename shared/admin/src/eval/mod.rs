//! The command `eval`: gives the messages of a data set to the agent, and compares its choice of
//! a skill and its answer with those that each row expects.
//!
//! - here: the run and its table
//! - `row`: a row of the data set
//! - `models`: the models of a run
//! - `compare`: how a row differs from what happened

mod compare;
mod models;
mod row;

use crate::BuildNamed;
use crate::output::CommandError;
use a2a_lambda::engine::RoutePreview;
use a2a_lambda::runtime::adapt_to_model;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::AgentDefinition;
use a2a_lambda::testing::{ModelUse, Reply, SkillTest};
use models::Models;
use row::{Row, Target};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// A data set, and the models that answer.
#[derive(Debug, Clone, clap::Args)]
pub struct Eval {
    /// JSON lines. A message is `text` or `data`; `earlier` are texts sent before, and `to` says
    /// how it belongs to them: `task`, `reference` or `context`. Expected are `skill` (`null`: a
    /// question) and `by`, the step that chooses it (`ask`: the rules ask, and a model may
    /// choose), and of the answer `contains` (a text), `equals` (a JSON object), `artifact` (its
    /// name; the two before are then about it alone), `tool` (its name) and `tokens_below`.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Whose skills.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Answer from the recordings in this folder in place of the models of the settings.
    #[arg(long, value_name = "DIR")]
    pub cassettes: Option<PathBuf>,
    /// Ask the models of the settings, and record what they answer.
    #[arg(long, requires = "cassettes")]
    pub record: bool,
}

/// What happened with a row.
struct RowOutcome {
    route: Option<RoutePreview>,
    usage: ModelUse,
    faults: Vec<String>,
}

impl Eval {
    /// Runs each row on a bench of its own and prints its line.
    ///
    /// # Errors
    /// A text for the user when the data set, the agent or a model cannot be used, and when a row
    /// failed.
    pub async fn run(
        &self,
        agent: BuildNamed<'_>,
        source: &dyn Source,
    ) -> Result<(), CommandError> {
        let settings = Settings::read_public(source)?;
        let agent = agent(self.agent.as_deref(), &settings);
        let agent = agent.map_err(|error| format!("failed to build the agent: {error}"))?;
        let rows = Row::read(&self.file, &agent)?;
        let models = Models::of(&settings, self.cassettes.as_deref(), self.record)?;
        let agent = adapt_to_model(agent, models.skills.is_some());
        print("result  decided by  skill                   tokens  message\n")?;
        let (mut failures, mut tokens) = (0, 0);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for row in &rows {
            let outcome = Box::pin(outcome(row, &agent, &models)).await;
            print(&line(row, &outcome))?;
            failures += usize::from(!outcome.faults.is_empty());
            tokens += outcome.usage.tokens;
            let how = outcome.route.map_or("-".to_owned(), |route| route.how);
            *counts.entry(how).or_default() += 1;
        }
        let counts = counts.iter().map(|(how, count)| format!("{how} {count}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let passes = rows.len() - failures;
        print(&format!(
            "\nok {passes}, failed {failures}, tokens {tokens}; decided by: {counts}\n"
        ))?;
        models.finish()?;
        match failures {
            0 => Ok(()),
            failures => Err(format!("{failures} of {} rows failed", rows.len()).into()),
        }
    }
}

/// Prints a text at once.
fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())?;
    io::stdout().flush()
}

/// The line of a row, and a line for each fault.
fn line(row: &Row, outcome: &RowOutcome) -> String {
    let result = match outcome.faults.is_empty() {
        true => "ok",
        false => "failed",
    };
    let (how, skill) = match &outcome.route {
        Some(route) => (route.how.as_str(), route.skill.as_ref()),
        None => ("-", None),
    };
    let skill = skill.map_or("-", |id| id.as_str());
    let (tokens, label) = (outcome.usage.tokens, compare::cut(&row.label()));
    let mut lines = vec![format!(
        "{result:6}  {how:10}  {skill:22}  {tokens:6}  {label}"
    )];
    let faults = outcome.faults.iter();
    lines.extend(faults.map(|fault| format!("        line {}: {fault}", row.line)));
    // What a message or a model says gives the terminal no commands.
    let lines = lines.iter().map(|line| line.replace(char::is_control, " "));
    lines.map(|line| line + "\n").collect()
}

async fn outcome(row: &Row, agent: &AgentDefinition, models: &Models) -> RowOutcome {
    let mut client = SkillTest::of_agent(agent);
    if let Some(model) = &models.skills {
        client.model(model.clone());
    }
    if let Some(model) = &models.router {
        client.router(model.clone());
    }
    let result = answer(row, &mut client, models).await;
    let usage = models.take_use();
    let (route, faults) = match result {
        Ok((route, reply)) => {
            let mut faults = compare::route(row, &route, models.router.is_some());
            if let Some(reply) = reply {
                faults.extend(compare::answer(row, &reply, client.cause()));
                faults.extend(compare::usage(row, &usage));
            }
            (Some(route), faults)
        }
        Err(fault) => (None, vec![fault]),
    };
    RowOutcome {
        route,
        usage,
        faults,
    }
}

/// Sends the earlier messages, each as a task of its own in one context, and then that of the
/// row. Returns its route, and the answer if it is sent.
async fn answer(
    row: &Row,
    client: &mut SkillTest,
    models: &Models,
) -> Result<(RoutePreview, Option<Reply>), String> {
    let mut tasks = Vec::new();
    let mut is_open = false;
    for text in &row.earlier {
        let reply = client.new_task().send(text.as_str()).await;
        let reply = reply.map_err(|error| format!("`{text}` of `earlier`: {error}"))?;
        is_open = reply.state().is_some_and(|state| !state.is_terminal());
        tasks.extend(reply.task().map(|task| task.id.to_string()));
    }
    match row.to {
        Some(Target::Task) if is_open => {}
        Some(Target::Task) => return Err("`earlier` leaves no open task for `to`".to_owned()),
        Some(Target::Reference) => _ = client.new_task().references(tasks),
        Some(Target::Context) | None => _ = client.new_task(),
    }
    // They are not what the row is about.
    _ = models.take_use();
    let result = match row.is_sent() {
        true => client.send(row.content()).await.map(Some),
        false => client.preview(row.content()).await.map(|_| None),
    };
    let reply = result.map_err(|error| error.to_string())?;
    let route = client.route().cloned().ok_or("the message has no route")?;
    Ok((route, reply))
}

#[cfg(test)]
mod tests;
