//! What a client sees that knows nothing of this project: it sends what the specifications
//! name, and no member, header or path of ours. `docs/capabilities.md` names these tests.

mod contexts;
mod limits;
mod models;
mod organisation;
mod skills;
mod tasks;
mod walks;

use a2a_lambda::skill::{AgentDefinition, BuildError};
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::frames::{Frame, frames};
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Live, Reply, Request, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::cell::Cell;
use std::time::Duration;

/// Names of ours. A path of ours contains the first.
const OURS: [&str; 3] = ["a2a-lambda", "skillId", "idempotency"];

/// The conformance agent, whose one skill obeys the words of a message.
fn obedient() -> World {
    World::serving(obeys, |_| ()).unwrap()
}

fn obeys(_: Gate) -> Result<AgentDefinition, BuildError> {
    conformance_agent::agent(Duration::from_secs(2))
}

/// The reference agent.
fn reference() -> World {
    World::serving(|_| reference_agent::agent(), |_| ()).unwrap()
}

/// A client of one dialect.
struct Client<'w> {
    world: &'w World,
    dialect: Dialect,
    caller: Option<&'static str>,
    /// The messages that it has sent.
    count: Cell<usize>,
}

impl<'w> Client<'w> {
    const fn new(world: &'w World, dialect: Dialect) -> Self {
        Self {
            world,
            dialect,
            caller: None,
            count: Cell::new(0),
        }
    }

    /// The same client with these credentials.
    const fn from(mut self, caller: &'static str) -> Self {
        self.caller = Some(caller);
        self
    }

    async fn open(&self, mut request: Request) -> Live {
        let body = String::from_utf8_lossy(&request.body);
        let seen = format!("{} {:?} {body}", request.target, request.headers);
        let seen = seen.to_ascii_lowercase();
        let ours = OURS.map(str::to_ascii_lowercase);
        assert!(!ours.iter().any(|name| seen.contains(name)), "{seen}");
        request.caller = self.caller;
        self.world.open(&request).await
    }

    async fn call(&self, request: Request) -> Reply {
        self.open(request).await.finish().await
    }

    /// The parameters of a message with a text. Each has an id of its own.
    fn message(&self, text: &str, task: Option<&str>, context: Option<&str>) -> Value {
        self.count.set(self.count.get() + 1);
        let (before, count) = (self.world.store.commits().len(), self.count.get());
        let name = format!("{:?}:{before}:{count}", self.dialect);
        self.dialect.say(&Say {
            text,
            skill: None,
            task,
            new_task: &name,
            context,
            id: &name,
        })
    }

    /// The parameters of a message with this part, in the form of [`Self::part`].
    fn with(&self, part: &Value) -> Value {
        let mut params = self.message("", None, None);
        params["message"][self.dialect.parts()] = json!([part]);
        params
    }

    /// A data part.
    fn data(&self, data: &Value) -> Value {
        match self.dialect {
            Dialect::Rpc10 | Dialect::Rest10 => json!({ "data": data }),
            Dialect::Rest03 => json!({"data": {"data": data}}),
            Dialect::Rpc03 => json!({"kind": "data", "data": data}),
            Dialect::Rpc01 | Dialect::Path01 => json!({"type": "data", "data": data}),
        }
    }

    /// A file part.
    fn file(&self, name: &str, media_type: &str, bytes: &[u8]) -> Value {
        let bytes = STANDARD.encode(bytes);
        let file = json!({"name": name, "mimeType": media_type, "bytes": bytes});
        match self.dialect {
            Dialect::Rpc10 | Dialect::Rest10 => {
                json!({"filename": name, "mediaType": media_type, "raw": bytes})
            }
            Dialect::Rest03 => json!({"file": {
                "name": name, "mimeType": media_type, "fileWithBytes": bytes,
            }}),
            Dialect::Rpc03 => json!({"kind": "file", "file": file}),
            Dialect::Rpc01 | Dialect::Path01 => json!({"type": "file", "file": file}),
        }
    }

    async fn sends(&self, params: &Value) -> Reply {
        self.call(self.dialect.request(Op::Send, "", params)).await
    }

    /// The task of a send, which has to be a success.
    async fn makes(&self, params: &Value) -> Value {
        let reply = self.sends(params).await;
        let is_error = reply.status != 200 || reply.json().get("error").is_some();
        assert!(!is_error, "{:?} {params}: {}", self.dialect, reply.text());
        self.dialect.task(&reply)
    }

    /// The task of a first message.
    async fn says(&self, text: &str) -> Value {
        self.makes(&self.message(text, None, None)).await
    }

    /// The task of a first message in a context.
    async fn says_in(&self, context: &str, text: &str) -> Value {
        self.makes(&self.message(text, None, Some(context))).await
    }

    /// The task after a message in it.
    async fn answers(&self, task: &Value, text: &str) -> Value {
        self.makes(&self.message(text, Some(id(task)), None)).await
    }

    /// The task of a message that refers to another task. Only 1.0 and 0.3 have the member.
    async fn refers(&self, task: &Value, text: &str) -> Value {
        let context = self.dialect.context(task);
        let mut params = self.message(text, None, Some(&context));
        params["message"]["referenceTaskIds"] = json!([id(task)]);
        self.makes(&params).await
    }

    async fn streams(&self, params: &Value) -> Vec<Frame> {
        let request = self.dialect.request(Op::Stream, "", params);
        frames(&self.call(request).await).unwrap()
    }

    async fn gets(&self, task: &Value) -> Value {
        let reply = self.call(self.dialect.of_task(Op::Get, id(task))).await;
        self.dialect.task(&reply)
    }

    fn state(&self, task: &Value) -> String {
        self.dialect.state(task)
    }

    /// The text of the message in a task's status.
    fn words(&self, task: &Value) -> String {
        self.dialect.status_words(task)
    }

    /// Texts of updates and names of artifacts, in the order of their events.
    fn shown(&self, frames: &[Frame]) -> Vec<String> {
        let lines = frames.iter().map(|frame| self.dialect.described(frame));
        let shown = lines.filter_map(|line| match line.split_once(' ')? {
            ("status", rest) => Some(rest.split_once(' ')?.1.to_owned()),
            ("artifact", rest) => {
                let mut words = rest.split(' ').filter(|word| !word.starts_with('#'));
                words.next().map(str::to_owned)
            }
            _ => None,
        });
        shown.collect()
    }
}

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap_or_else(|| panic!("{task}"))
}

/// The artifact of this name.
fn artifact<'v>(task: &'v Value, name: &str) -> &'v Value {
    let mut all = task["artifacts"].as_array().into_iter().flatten();
    let artifact = all.find(|it| it["name"] == name);
    artifact.unwrap_or_else(|| panic!("no {name} in {task}"))
}

/// The data of the artifact of this name, in 1.0.
fn data<'v>(task: &'v Value, name: &str) -> &'v Value {
    at(artifact(task, name), "/parts/0/data")
}

/// The bytes of the artifact of this name, in 1.0.
fn bytes(task: &Value, name: &str) -> Vec<u8> {
    let raw = at(artifact(task, name), "/parts/0/raw").as_str();
    STANDARD
        .decode(raw.unwrap_or_else(|| panic!("{task}")))
        .unwrap()
}

/// The code of a failed task.
fn code(task: &Value) -> &str {
    let code = at(task, "/status/message/metadata/a2a-lambda~1errorCode").as_str();
    code.unwrap_or_else(|| panic!("{task}"))
}
