//! Tests `#[skill]` as a skill author uses it.

use crate::prelude::*;
use crate::testing::{delivered, request};
use crate::{AnySkill, SkillEffect, SkillOutcome};
use a2a_lambda_model::task::SkillId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// Says back
/// what you said.
#[skill(id = "echo", tags = ["test"])]
async fn echo(input: Content) -> AgentResult<Content> {
    Ok(Content::from_text(input.text()?))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Terms {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[skill(
    id = "add",
    name = "Adder",
    description = "Adds two numbers.",
    tags = ["math", "test"],
    examples = ["add 1 and 2"],
    text = "add {a} and {b}",
    input_modes = ["application/json", "text/*"],
    output_modes = ["application/*"],
    background = true,
    effect = "read",
    keeps_input = false,
)]
async fn add(cx: &mut TaskContext<'_>, terms: Terms) -> AgentResult<Sum> {
    cx.send_intermediate_update("adding").await?;
    match terms.a.checked_add(terms.b) {
        Some(sum) => Ok(Sum { sum }),
        None => Err(AgentError::domain("OVERFLOW", "the sum is too large")),
    }
}

/// A skill whose name is also that of its variables.
#[skill(id = "reply", tags = ["test"])]
async fn reply(cx: String) -> AgentResult<String> {
    let reply = cx;
    Ok(reply)
}

/// Declines.
#[skill(id = "decline", tags = ["test"])]
async fn decline(_: String) -> AgentResult<OnRequestResult<Sum>> {
    Ok(OnRequestResult::Rejected {
        reason: "no".to_owned(),
    })
}

/// A skill with a field.
#[skill(id = "greet", tags = ["test"])]
struct Greet<T: Send + Sync + 'static> {
    greeting: T,
}

impl<T: AsRef<str> + Send + Sync + 'static> SkillHandler for Greet<T> {
    type Input = String;
    type Output = String;
    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        name: String,
    ) -> AgentResult<OnRequestResult<String>> {
        OnRequestResult::done(format!("{} {name}", self.greeting.as_ref()))
    }
}

fn registered(id: &str) -> Arc<dyn AnySkill> {
    let agent = Agent::builder("agent")
        .skill(echo)
        .skill(add)
        .skill(decline)
        .skill(reply)
        .skill(Greet { greeting: "hello" })
        .build()
        .unwrap();
    Arc::clone(agent.skill(&SkillId::parse(id).unwrap()).unwrap())
}

#[test]
fn a_function_that_gives_content_replies_without_a_task() {
    let skill = registered("echo");
    assert!(!skill.makes_task());
    assert_eq!(skill.metadata().description, "Says back what you said.");
    assert_eq!(skill.metadata().name, "echo");
    let SkillOutcome::Message { message: said } = request(&*skill, "hi") else {
        panic!("no reply");
    };
    assert_eq!(said.text().unwrap(), "hi");
}

#[test]
fn a_function_that_gives_an_output_completes_a_task() {
    let skill = registered("add");
    assert!(skill.makes_task());
    let terms = Content::from_data(&json!({"a": 1, "b": 2})).unwrap();
    let SkillOutcome::Completed { artifacts, .. } = request(&*skill, terms) else {
        panic!("not completed");
    };
    let sum = ("add".to_owned(), json!({"sum": 3}));
    assert_eq!(delivered(&artifacts), [sum]);
    let huge = Content::from_data(&json!({"a": i64::MAX, "b": 2})).unwrap();
    let SkillOutcome::Failed { error } = request(&*skill, huge) else {
        panic!("not failed");
    };
    assert_eq!(error.code().as_str(), "OVERFLOW");
}

#[test]
fn everything_in_the_attribute_is_in_the_metadata() {
    let metadata = *registered("add").metadata();
    assert_eq!(
        metadata,
        SkillMetadata {
            id: "add",
            name: "Adder",
            description: "Adds two numbers.",
            tags: &["math", "test"],
            examples: &["add 1 and 2"],
            text: &["add {a} and {b}"],
            refines: &[],
            accepts_routed: false,
            cancel_words: false,
            input_modes: &["application/json", "text/*"],
            output_modes: &["application/*"],
            background: true,
            effect: SkillEffect::Read,
            keeps_input: false,
        }
    );
}

#[test]
fn a_function_may_use_its_own_name_for_a_variable() {
    let SkillOutcome::Completed { artifacts, .. } = request(&*registered("reply"), "hi") else {
        panic!("not completed");
    };
    assert_eq!(delivered(&artifacts)[0].1, "hi");
}

#[test]
fn function_may_return_any_result() {
    let outcome = request(&*registered("decline"), "please");
    assert!(matches!(outcome, SkillOutcome::Rejected { reason } if reason == "no"));
}

#[test]
fn a_struct_may_have_fields_and_generics() {
    let SkillOutcome::Completed { artifacts, .. } = request(&*registered("greet"), "Ann") else {
        panic!("not completed");
    };
    assert_eq!(delivered(&artifacts)[0].1, "hello Ann");
}
