//! How what happened differs from what a row expects: a text for each fault.

use super::row::Row;
use a2a_lambda::engine::RoutePreview;
use a2a_lambda::task::{Part, PartContent, TaskState};
use a2a_lambda::testing::{ModelUse, Reply};
use serde_json::Value;

/// The most characters of an answer in a fault.
const SHOWN: usize = 300;

/// Compares the skill and the step that chose it. `has_router`: a model may choose where the
/// rules ask.
pub(super) fn route(row: &Row, route: &RoutePreview, has_router: bool) -> Vec<String> {
    let may_choose = row.by.as_deref() == Some("ask");
    let mut faults = Vec::new();
    if let Some(skill) = &row.skill {
        // The rules ask where a model may decide.
        let goal = skill.as_deref().filter(|_| has_router || !may_choose);
        let choice = route.skill.as_ref().map(|id| id.as_str());
        // With a model the fallback answers in place of the question.
        let is_fallback = goal.is_none() && route.how == "fallback";
        if choice != goal && !is_fallback {
            let word =
                |id: Option<&str>| id.map_or("a question".to_owned(), |id| format!("`{id}`"));
            let (choice, goal) = (word(choice), word(goal));
            faults.push(format!("the skill is {choice}, expected {goal}"));
        }
    }
    // The question repeats words of the message, so `contains` proves nothing.
    if route.how == "ask" && row.skill.is_none() && row.by.is_none() {
        faults.push("no skill has got the message: the agent asks which one".to_owned());
    }
    // Where the rules ask, a model or the fallback has decided.
    let is_asked = may_choose && has_router && ["model", "fallback"].contains(&&*route.how);
    let is_step = |by: &String| *by == route.how || is_asked;
    if let Some(by) = row.by.as_ref().filter(|by| !is_step(by)) {
        faults.push(format!("`{}` decides, expected `{by}`", route.how));
    }
    faults
}

/// Compares the answer. `cause` is the private cause of a failure.
pub(super) fn answer(row: &Row, reply: &Reply, cause: Option<String>) -> Vec<String> {
    let mut faults = Vec::new();
    if matches!(reply.state(), Some(TaskState::Failed | TaskState::Rejected)) {
        let code = reply.error_code().unwrap_or_default();
        let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
        faults.push(format!("the task failed: {code} {}{cause}", reply.text()));
    }
    let name = row.artifact.as_deref();
    let artifacts = || {
        reply
            .task()
            .into_iter()
            .flat_map(|task| task.artifacts.iter().flatten())
    };
    if let Some(name) = name.filter(|name| reply.artifact(name).is_none()) {
        let names: Vec<&str> = artifacts().filter_map(|it| it.name.as_deref()).collect();
        let is_question = reply.state().is_some_and(|state| !state.is_terminal());
        let answer = match is_question.then(|| reply.text()) {
            Some(text) => format!("the agent asks: {}", cut(text)),
            None => format!("there are: {}", join_names(&names)),
        };
        faults.push(format!("no artifact `{name}`; {answer}"));
        return faults;
    }
    let artifacts = artifacts().filter(|it| name.is_none() || it.name.as_deref() == name);
    let message = reply.message().filter(|_| name.is_none());
    let message = message.map(|message| message.parts.as_slice());
    let contents: Vec<&[Part]> = message
        .into_iter()
        .chain(artifacts.map(|it| it.parts.as_slice()))
        .collect();
    if let Some(words) = &row.contains {
        let texts: Vec<String> = contents.iter().map(|parts| text(parts)).collect();
        let text = texts.join("\n");
        if !text.contains(words.as_str()) {
            faults.push(format!("`{words}` is not in: {}", cut(&text)));
        }
    }
    if let Some(value) = &row.equals {
        let parts = contents.iter().copied().flatten();
        let values: Vec<&Value> = parts.filter_map(data).collect();
        if !values.iter().any(|it| is_equal(it, value)) {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            let values = cut(&values.join(", "));
            faults.push(format!("no data is {value}; there is: {values}"));
        }
    }
    faults
}

/// Compares what models did for the answer.
pub(super) fn usage(row: &Row, usage: &ModelUse) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(tool) = row.tool.as_ref().filter(|tool| !usage.tools.contains(tool)) {
        let tools = join_names(&usage.tools);
        faults.push(format!("no model called `{tool}`; called: {tools}"));
    }
    if let Some(most) = row.tokens_below.filter(|most| usage.tokens >= *most) {
        faults.push(format!("{} tokens, expected below {most}", usage.tokens));
    }
    faults
}

/// The text of the parts. A streamed text has many.
fn text(parts: &[Part]) -> String {
    let texts = parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Data(value) => value.to_string(),
        PartContent::Raw(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        PartContent::Url(_) | PartContent::Stored(_) => String::new(),
    });
    texts.collect()
}

fn data(part: &Part) -> Option<&Value> {
    match &part.content {
        PartContent::Data(value) => Some(value),
        _ => None,
    }
}

/// Whether two values are the same JSON: 4 is 4.0.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let is_float = one.is_f64() || other.is_f64();
            one == other || is_float && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, it)| is_equal(one, it))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, it): (&String, &Value)| {
                one.get(name).is_some_and(|value| is_equal(value, it))
            };
            one.len() == other.len() && other.iter().all(has)
        }
        _ => one == other,
    }
}

fn join_names<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(SHOWN).collect()
}
