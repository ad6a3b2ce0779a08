//! Contexts of the conformance agent in every generation, with client-made and
//! with server-made ids, wherever the agent runs.

use a2a_lambda::task::Timestamp;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{CONTEXT_EXPIRED, Fault};
use a2a_lambda_tests::world::{Reply, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An agent to which requests are sent.
pub(crate) trait Agent {
    /// The whole response to a request.
    async fn call(&self, request: &Request) -> Reply;
}

/// How a context was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// The server made its id; it has one task and no thread.
    Derived,
    /// The server made its id; it has two tasks and so a thread.
    Second,
    /// The client made its id.
    Own,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Derived, Self::Second, Self::Own];
}

/// A dialect of each generation.
pub(crate) const GENERATIONS: [Dialect; 3] = [Dialect::Rest10, Dialect::Rpc03, Dialect::Path01];

/// A context with at least one task.
#[derive(Debug, Clone)]
pub(crate) struct Talk {
    pub(crate) dialect: Dialect,
    pub(crate) kind: Kind,
    pub(crate) context: String,
    /// Its first task.
    pub(crate) task: String,
}

/// What the agent remembers of a context.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The messages, and the texts that skills added.
    pub(crate) said: Vec<String>,
    /// The value that a skill saved.
    pub(crate) noted: Value,
    pub(crate) steps: Value,
    /// Whether the reply says that the saved state has expired.
    pub(crate) reset: bool,
}

/// A number that is unique in this process.
fn number() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

/// Sends a message for a new task, in this context or in a new one.
async fn say(agent: &impl Agent, dialect: Dialect, text: &str, context: Option<&str>) -> Reply {
    let name = format!("t:{}", number());
    let mut say = Say::to("conformance", text).under(&name);
    say.context = context;
    agent.call(&dialect.send(&say)).await
}

fn completed(dialect: Dialect, reply: &Reply) -> Value {
    let task = dialect.task(reply);
    let state = dialect.state(&task);
    assert_eq!(state, "completed", "{dialect:?} {}", reply.text());
    task
}

/// The first member with this name, at any depth.
fn find<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) => {
            let inner = || members.values().find_map(|value| find(value, name));
            members.get(name).or_else(inner)
        }
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

impl Talk {
    /// Begins a context with the message `first`. Kind `Second` adds `echo second`.
    pub(crate) async fn begin(
        agent: &impl Agent,
        dialect: Dialect,
        kind: Kind,
        first: &str,
    ) -> Self {
        let own = format!("mine:{}", number());
        let context = (kind == Kind::Own).then_some(own.as_str());
        let task = completed(dialect, &say(agent, dialect, first, context).await);
        let talk = Self {
            dialect,
            kind,
            context: dialect.context(&task),
            task: task["id"].as_str().unwrap().to_owned(),
        };
        if kind == Kind::Own {
            assert_eq!(talk.context, own);
        }
        if kind == Kind::Second {
            talk.continues(agent, "echo second").await;
        }
        talk
    }

    /// Sends a message for a new task in the context.
    pub(crate) async fn say(&self, agent: &impl Agent, text: &str) -> Reply {
        say(agent, self.dialect, text, Some(&self.context)).await
    }

    /// The same, and asserts that the task completes. Returns the task.
    pub(crate) async fn continues(&self, agent: &impl Agent, text: &str) -> Value {
        let task = completed(self.dialect, &self.say(agent, text).await);
        assert_eq!(self.dialect.context(&task), self.context);
        task
    }

    /// What the agent remembers of the context.
    pub(crate) async fn recall(&self, agent: &impl Agent) -> Memory {
        let task = self.continues(agent, "recall").await;
        let member = |name| find(&task["artifacts"], name).cloned().unwrap();
        let said = member("said");
        let said = said.as_array().unwrap().iter();
        let reset = at(&task, "/metadata/a2a-lambda~1contextReset");
        Memory {
            said: said.map(|it| it.as_str().unwrap().to_owned()).collect(),
            noted: member("noted"),
            steps: member("steps"),
            reset: reset == &json!(true),
        }
    }

    /// Asserts that the context has expired. Returns the body of the error.
    pub(crate) async fn is_over(&self, agent: &impl Agent) -> Vec<u8> {
        let reply = self.say(agent, "echo more").await;
        let fault = Fault::new(self.dialect, CONTEXT_EXPIRED);
        assert_eq!(fault.check(&reply), Ok(()), "{self:?} {}", reply.text());
        reply.body
    }

    /// Reads its first task.
    pub(crate) async fn first_task(&self, agent: &impl Agent) -> Reply {
        let get = self.dialect.of_task(Op::Get, &self.task);
        agent.call(&get).await
    }
}

/// A request to one of the runtime's own paths.
pub(crate) fn ours(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/a2a-lambda/{path}")).header("a2a-version", "1.0")
}

/// The caller's active contexts, and when each expires.
pub(crate) async fn listed(agent: &impl Agent) -> BTreeMap<String, Timestamp> {
    let mut all = BTreeMap::new();
    let mut token = String::new();
    loop {
        let path = format!("contexts?pageSize=20&pageToken={token}");
        let page = agent.call(&ours("GET", &path)).await.json();
        for context in page["contexts"].as_array().unwrap() {
            let text = |name: &str| context[name].as_str().unwrap().to_owned();
            let over = Timestamp::parse_rfc3339(&text("expiresAt")).unwrap();
            all.insert(text("contextId"), over);
        }
        page["nextPageToken"]
            .as_str()
            .unwrap()
            .clone_into(&mut token);
        if token.is_empty() {
            return all;
        }
    }
}
