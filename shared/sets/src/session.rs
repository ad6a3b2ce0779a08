//! What a conversation begins with: memories that fit, and the constraints in force.

use crate::access::{Access, Denial, Verb};
use crate::governance::in_force::load;
use crate::governance::merge::{MergedPolicies, merge};
use crate::governance::policy::Severity;
use crate::layer::{KnowledgeLayer, Layer};
use crate::lines::list;
use crate::memory::skills::{NOUNS, recall};
use a2a_lambda::prelude::*;
use a2a_lambda::skill::{SessionAdapter, SessionContext, SkillSet, Tool};
use a2a_lambda::task::PartContent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::pin::Pin;

/// The memories and the constraints of a session context.
const MEMORIES: usize = 5;
const CONSTRAINTS: usize = 20;

/// The skill of the set `session`.
#[must_use]
pub fn set() -> SkillSet {
    SkillSet::new("session").skill(session_context)
}

/// Joins the agent with what its organisation knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct A2aAdapter;

impl A2aAdapter {
    /// The memory skills of an agent as tools.
    #[must_use]
    pub fn memory_tools(self, agent: &AgentDefinition) -> Vec<Tool> {
        agent.tools("memory")
    }

    /// The knowledge skills of an agent as tools.
    #[must_use]
    pub fn knowledge_tools(self, agent: &AgentDefinition) -> Vec<Tool> {
        agent.tools("knowledge")
    }
}

impl SessionAdapter for A2aAdapter {
    fn session_context<'a>(
        &'a self,
        cx: &'a TaskContext<'_>,
    ) -> Pin<Box<dyn Future<Output = AgentResult<SessionContext>> + Send + 'a>> {
        Box::pin(async move {
            let thread = cx.thread().await?;
            let query = thread.iter().rev().find_map(|message| {
                let mut parts = message.parts.iter();
                parts.find_map(|part| match &part.content {
                    PartContent::Text(text) => Some(text.clone()),
                    _ => None,
                })
            });
            let (context, _) = load_context(cx, query.as_deref()).await?;
            Ok(context)
        })
    }
}

/// The memories that fit the words, and the constraints of the caller's layers with their version.
async fn load_context(
    cx: &TaskContext<'_>,
    query: Option<&str>,
) -> AgentResult<(SessionContext, String)> {
    let (memories, partial) = match query.map(shorten).filter(|query| !query.is_empty()) {
        Some(query) => recall(cx, &query, MEMORIES).await?,
        None => (Vec::new(), false),
    };
    let layers = KnowledgeLayer::ALL.map(KnowledgeLayer::layer);
    let scopes = Access::in_turn(cx).scopes(Verb::KnowledgeCheck, layers);
    let in_force = load(cx, &scopes).await?;
    let constraints = constraints(&merge(&in_force.policies, KnowledgeLayer::Project));
    let prompt_addition = prompt(&constraints);
    let context = SessionContext {
        memories,
        constraints,
        prompt_addition,
        partial,
    };
    Ok((context, in_force.version.clone()))
}

/// The beginning of a text, as much as a search takes.
fn shorten(query: &str) -> String {
    let end = query.floor_char_boundary(crate::memory::search::QUERY_MAX);
    query.get(..end).unwrap_or_default().trim().to_owned()
}

/// The rules that warn or forbid, for the prompt and the client of a conversation: at most
/// [`CONSTRAINTS`] of them.
fn constraints(policies: &MergedPolicies<'_>) -> Vec<Value> {
    let rules = policies.rules.iter();
    let active = rules.filter(|rule| rule.severity >= Severity::Warn);
    let json = active.map(|rule| {
        json!({
            "policyId": rule.policy_id,
            "ruleId": rule.id(),
            "severity": rule.severity,
            "message": rule.message(),
            "layer": rule.layer,
        })
    });
    json.take(CONSTRAINTS).collect()
}

/// The text for the system prompt of a model. Memories are not part of it: whoever may write one
/// would give the model instructions.
fn prompt(constraints: &[Value]) -> String {
    let messages = constraints.iter().filter_map(|it| it["message"].as_str());
    let lines: Vec<String> = messages.map(|message| format!("\n- {message}")).collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("What has to hold:{}", lines.concat())
}

/// What to find a session context for.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct SessionQuery {
    /// The conversation; this one by default. Another one has nothing to show.
    context_id: Option<String>,
    /// The words that memories should fit.
    query: Option<String>,
}

/// What a conversation begins with.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FoundSession {
    /// Data of others, with their authors.
    memories: Vec<Value>,
    constraints: Vec<Value>,
    /// The constraints, for the system prompt of a model.
    prompt_addition: String,
    /// Whether older memories were not searched.
    partial: bool,
    /// The version of the policies in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_version: Option<String>,
}

/// Finds what a conversation should know: memories, and the constraints in force.
#[skill(
    id = "session_context",
    name = "Session context",
    tags = ["session", "context"],
    input_modes = ["application/json"],
    output_modes = ["application/json"],
    effect = "read",
)]
pub(crate) async fn session_context(
    cx: &mut TaskContext<'_>,
    input: SessionQuery,
) -> AgentResult<OnRequestResult<FoundSession>> {
    let id = input.context_id.as_deref();
    match Access::in_turn(cx).scope(Verb::SessionContext, Layer::Session, id) {
        Ok(_) => {}
        Err(Denial::Foreign) => {
            return OnRequestResult::done(FoundSession::default())
                .saying("Found no memories, and no constraints");
        }
        Err(denial) => return denial.rejection(),
    }
    let (context, version) = load_context(cx, input.query.as_deref()).await?;
    let texts = |values: &[Value], nouns, name| {
        let texts = values.iter().filter_map(move |it| it[name].as_str());
        list(values.len(), nouns, texts)
    };
    let memories = texts(&context.memories, NOUNS, "content");
    let nouns = ["constraint", "constraints"];
    let constraints = texts(&context.constraints, nouns, "message");
    OnRequestResult::done(FoundSession {
        memories: context.memories,
        constraints: context.constraints,
        prompt_addition: context.prompt_addition,
        partial: context.partial,
        policy_version: Some(version),
    })
    .saying(format!("Found {memories}, and {constraints}"))
}
