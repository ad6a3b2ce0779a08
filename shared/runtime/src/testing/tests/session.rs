//! The session context on the real engine, and tools in a turn.

use crate::prelude::*;
use crate::task::metadata_keys::ACTIVE_CONSTRAINTS;
use crate::testing::SkillTest;
use a2a_lambda_skill::{SessionAdapter, SessionContext, SkillSet, Tool};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Clone, Default)]
struct Adapter {
    asked: Arc<AtomicU32>,
    fails: bool,
}

impl SessionAdapter for Adapter {
    fn session_context<'a>(
        &'a self,
        cx: &'a TaskContext<'_>,
    ) -> BoxFuture<'a, AgentResult<SessionContext>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            if self.fails {
                return Err(AgentError::internal("the memory is down"));
            }
            let subject = cx.caller().owner.subject.as_str();
            Ok(SessionContext {
                memories: vec![json!({"content": format!("{subject} likes tea")})],
                constraints: vec![json!({"policyId": "p-1"})],
                prompt_addition: "Offer tea.".to_owned(),
                partial: false,
            })
        })
    }
}

/// Says what the conversation began with.
#[skill(id = "known", tags = ["test"])]
async fn known(cx: &mut TaskContext<'_>, _: String) -> AgentResult<String> {
    let found = cx.session_context().await?;
    Ok(found.map_or_else(String::new, |it| {
        format!(
            "{} {} {}",
            it.prompt_addition,
            it.memories.len(),
            it.partial
        )
    }))
}

fn agent(adapter: Adapter) -> AgentDefinition {
    let agent = Agent::builder("session").session_context(adapter);
    agent.skill(known).build().unwrap()
}

#[tokio::test]
async fn the_first_turn_of_a_conversation_finds_its_context_and_tells_the_constraints() {
    let adapter = Adapter::default();
    let agent = agent(adapter.clone());
    let mut skill_test = SkillTest::new(&agent, "known");
    for (new_context, asked, tells) in [(false, 1, true), (false, 1, false), (true, 2, true)] {
        if new_context {
            skill_test.new_context();
        }
        let reply = skill_test.send("hello").await.unwrap();
        let text = reply.artifact_text("known");
        assert_eq!(text.as_deref(), Some("Offer tea. 1 false"));
        assert_eq!(adapter.asked.load(Ordering::Relaxed), asked);
        let history = reply.task().unwrap().history.iter().flatten();
        let shown: Vec<_> = history
            .filter_map(|message| message.metadata.get(ACTIVE_CONSTRAINTS))
            .collect();
        let expected = json!([{"policyId": "p-1"}]);
        assert_eq!(shown, vec![&expected; usize::from(tells)]);
    }
    // The state of a context is kept for an hour.
    skill_test.advance(Duration::from_secs(3601));
    skill_test.send("again").await.unwrap();
    assert_eq!(adapter.asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn an_adapter_that_fails_leaves_a_partial_context_and_the_skill_runs() {
    let agent = agent(Adapter {
        fails: true,
        ..Adapter::default()
    });
    let reply = SkillTest::new(&agent, "known").send("hello").await.unwrap();
    assert_eq!(reply.artifact_text("known").as_deref(), Some(" 0 true"));
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Numbers {
    numbers: Vec<i64>,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Adds numbers.
#[skill(id = "sum", tags = ["test"])]
async fn sum(given: Numbers) -> AgentResult<Sum> {
    let mut sum: i64 = 0;
    for number in given.numbers {
        sum = sum
            .checked_add(number)
            .ok_or_else(|| AgentError::domain("OVERFLOW", "too large"))?;
    }
    Ok(Sum { sum })
}

/// Calls the tool `sum` with the given data.
#[skill(id = "caller", tags = ["test"], states = [Vec<Tool>])]
struct ToolCaller;

impl SkillHandler for ToolCaller {
    type Input = serde_json::Value;
    type Output = serde_json::Value;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: serde_json::Value,
    ) -> AgentResult<OnRequestResult<serde_json::Value>> {
        let tools = State::<Vec<Tool>>::of(cx).await?;
        let [tool] = tools.as_slice() else {
            return Err(AgentError::internal("one tool is expected"));
        };
        assert_eq!((tool.id(), tool.description()), ("sum", "Adds numbers."));
        assert_eq!(tool.input_schema()["required"], json!(["numbers"]));
        OnRequestResult::done(tool.execute(cx, &input).await?)
    }
}

#[tokio::test]
async fn a_skill_of_a_set_is_a_tool_with_its_schema_and_errors() {
    let tools = || SkillSet::new("math").skill(sum);
    let listed = Agent::builder("tools").skills(tools()).build().unwrap();
    assert!(listed.tools("memory").is_empty());
    let agent = Agent::builder("tools")
        .skills(tools())
        .skill(ToolCaller)
        .state_value(listed.tools("math"))
        .build()
        .unwrap();
    let mut skill_test = SkillTest::new(&agent, "caller");
    let given = |value| Content::from_data(&value).unwrap();
    let reply = skill_test
        .send(given(json!({"numbers": [1, 2]})))
        .await
        .unwrap();
    assert_eq!(reply.artifact_data("caller"), Some(json!({"sum": 3})));
    for (input, code) in [
        (json!({"numbers": [i64::MAX, 1]}), "OVERFLOW"),
        (json!({"numbers": "1"}), "INVALID_INPUT"),
        (json!({}), "INVALID_INPUT"),
    ] {
        let reply = skill_test.new_task().send(given(input)).await.unwrap();
        assert_eq!(reply.error_code(), Some(code));
    }
}
