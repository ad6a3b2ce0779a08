//! A skill whose reply text sets the state of the task (the hybrid pattern).
//!
//! A reply that is exactly one JSON object of the pattern asks; any other reply is the
//! result. Such a skill usually calls a model that has instructions to write these objects.
//! This one uses fixed rules, so its replies are the same everywhere.

use a2a_lambda::prelude::*;
use a2a_lambda::task::{Message, PartContent, Role};
use serde_json::json;

/// Formats a report as plain text, Markdown or PDF.
#[skill(
    id = "format-report",
    name = "Report formatter",
    tags = ["example", "documents", "format"],
    examples = ["Format my report", "Format my report as Markdown"],
    input_modes = ["text/plain"],
    cancel_words = true,
    effect = "read",
)]
struct FormatReport;

/// The skill with its reply function.
pub(crate) fn format_report() -> impl SkillHandler<a2a_lambda::skill::Asked> {
    HybridSkill::new(FormatReport, reply)
}

const WHICH_FORMAT: &str = "What format would you like for the report?";
const WHICH_KEY: &str = "Please provide your API key.";

#[derive(Clone, Copy)]
enum Format {
    Plain,
    Markdown,
    Pdf,
}

/// Replies to the messages of this task. The thread also holds the other tasks of the
/// context, so the function filters by task id.
async fn reply(cx: &mut TaskContext<'_>, thread: &Thread) -> AgentResult<String> {
    let here = |message: &&Message| message.task_id.as_ref() == Some(cx.task_id());
    let by = |role| move |message: &&Message| message.role == role;
    let request = thread
        .iter()
        .filter(here)
        .find(by(Role::User))
        .map_or("", text);
    let question = thread
        .iter()
        .filter(here)
        .rev()
        .find(by(Role::Agent))
        .map_or("", text);
    // A message with credentials has no task id, because no task stores it.
    let last = thread.iter().rev().find(by(Role::User)).map_or("", text);
    Ok(match question {
        WHICH_KEY if last.trim().is_empty() => asks_key(),
        // A real skill would call the service that makes the PDF.
        WHICH_KEY => format!("The report, ready for print:\n\n{request}"),
        _ => match format_in(last) {
            None => asks_format(),
            Some(Format::Pdf) => asks_key(),
            Some(Format::Plain) => format!("The report:\n\n{request}"),
            Some(Format::Markdown) => format!("# Report\n\n{request}"),
        },
    })
}

fn asks_format() -> String {
    json!({ "state": "input-required", "prompt": WHICH_FORMAT }).to_string()
}

fn asks_key() -> String {
    json!({
        "state": "auth-required",
        "prompt": WHICH_KEY,
        "auth_type": "api_key",
        "service": "pdf",
    })
    .to_string()
}

fn format_in(text: &str) -> Option<Format> {
    let text = text.to_lowercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| match word {
        "plain" | "text" => Some(Format::Plain),
        "markdown" => Some(Format::Markdown),
        "pdf" => Some(Format::Pdf),
        _ => None,
    })
}

fn text(message: &Message) -> &str {
    let mut parts = message.parts.iter();
    let text = parts.find_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    text.unwrap_or_default()
}
