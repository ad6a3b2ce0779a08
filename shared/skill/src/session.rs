//! What a conversation begins with: the memories and constraints that an adapter finds.

use super::{AgentError, AgentResult, TaskContext};
use a2a_lambda_model::task::Metadata;
use a2a_lambda_model::task::metadata_keys::ACTIVE_CONSTRAINTS;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// The session value that holds the [`SessionContext`].
const SESSION: &str = "a2a-lambda/session";

/// What an adapter has found for a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionContext {
    /// The memories that fit the conversation, the best one first. A model gets them as one
    /// message of data, so each of them says who wrote it.
    pub memories: Vec<Value>,
    /// The constraints that hold in it. The task tells them to the client.
    pub constraints: Vec<Value>,
    /// What has to hold, for the system prompt of a model. It contains nothing that callers may
    /// write, such as a memory.
    pub prompt_addition: String,
    /// Whether something could not be found.
    #[serde(default)]
    pub partial: bool,
}

/// Finds what a conversation begins with. See
/// [`AgentBuilder::session_context`](super::AgentBuilder::session_context).
pub trait SessionAdapter: Send + Sync + 'static {
    /// Finds what the conversation of `cx` should know. The first turn of a context calls it,
    /// and again the first turn after the state of the context has expired.
    ///
    /// # Errors
    /// Any error. It is logged, and the session context is empty and `partial`.
    fn session_context<'a>(
        &'a self,
        cx: &'a TaskContext<'_>,
    ) -> BoxFuture<'a, AgentResult<SessionContext>>;
}

impl fmt::Debug for dyn SessionAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionAdapter")
    }
}

/// Finds the session context, unless the conversation has one. A turn that makes a task tells
/// the client the constraints.
pub async fn begin_session(cx: &TaskContext<'_>, adapter: &dyn SessionAdapter, tells: bool) {
    if let Err(error) = begin(cx, adapter, tells).await {
        warn("the session context is not stored", &error);
    }
}

async fn begin(cx: &TaskContext<'_>, adapter: &dyn SessionAdapter, tells: bool) -> AgentResult<()> {
    if cx.load_session::<Value>(SESSION).await?.is_some() {
        return Ok(());
    }
    let context = match adapter.session_context(cx).await {
        Ok(context) => context,
        Err(error) => {
            warn("no session context was found", &error);
            SessionContext {
                partial: true,
                ..SessionContext::default()
            }
        }
    };
    cx.save_session(SESSION, &context)?;
    if tells && !context.constraints.is_empty() {
        let text = match context.constraints.len() {
            1 => "1 constraint is active".to_owned(),
            count => format!("{count} constraints are active"),
        };
        let constraints = Value::Array(context.constraints);
        let metadata = Metadata::from_iter([(ACTIVE_CONSTRAINTS.to_owned(), constraints)]);
        cx.tell(text, metadata).await?;
    }
    Ok(())
}

fn warn(what: &str, error: &AgentError) {
    let cause = error.cause().unwrap_or_default();
    tracing::warn!(
        a2a.error = error.code().as_str(),
        error.cause = cause,
        "{what}"
    );
}

impl TaskContext<'_> {
    /// What the adapter of the agent found for this conversation; `None` without an adapter.
    ///
    /// # Errors
    /// `STATE_INCOMPATIBLE` when an older version stored it. Also when it cannot be loaded.
    pub async fn session_context(&self) -> AgentResult<Option<SessionContext>> {
        self.load_session(SESSION).await
    }
    /// Finds the session context again, in a step, for a turn that needs what is known now.
    /// Functions and workers of this turn, and later turns of the conversation, get this one.
    ///
    /// # Errors
    /// The error of the adapter, and those of a step.
    pub async fn find_session_context(
        &self,
        adapter: &dyn SessionAdapter,
    ) -> AgentResult<SessionContext> {
        let context = self.step("session", adapter.session_context(self)).await?;
        self.save_session(SESSION, &context)?;
        Ok(context)
    }
}
