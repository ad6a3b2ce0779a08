//! Many idempotency keys in parallel, on the wire. Unrelated callers use each key in several
//! protocol versions, for new tasks, for answers and for replies without a task.

use a2a_lambda::skill::{
    Agent, AgentResult, Content, NoOutput, OnInputResult, OnRequestResult, Skill, SkillHandler,
    SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{Fault, KEY_REUSED};
use a2a_lambda_tests::fixture::{Fixture, Place};
use a2a_lambda_tests::world::{Reply, Request};
use futures::StreamExt as _;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Keys at each place. The tests of `engine::accept::idempotency` use a thousand keys of one kind in
/// memory; a table takes longer.
const KEYS: usize = 50;
/// Parallel sends of one key. All of them are sent a second time.
const SENDS: usize = 16;
/// Two subjects of one tenant, and a subject of the same name in another tenant.
const CALLERS: [&str; 3] = ["acme:ann", "acme:bob", "umbrella:ann"];
const NEWER: [Dialect; 4] = [
    Dialect::Rpc10,
    Dialect::Rpc03,
    Dialect::Rest10,
    Dialect::Rest03,
];
const METADATA: &str = "a2a-lambda/idempotencyKey";

/// How often a skill was started, by caller and text.
#[derive(Debug, Clone, Default)]
struct Starts(Arc<Mutex<BTreeMap<String, u32>>>);

impl Starts {
    fn note(&self, cx: &TaskContext<'_>, said: &str) {
        let owner = &cx.caller().owner;
        let of = format!("{} {:?} {said}", owner.tenant, owner.subject);
        *self.0.lock().unwrap().entry(of).or_default() += 1;
    }
}

/// Completes, or asks one question if the text starts with "ask".
struct Work(Starts);

#[derive(Serialize, Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

impl Skill for Work {
    const METADATA: SkillMetadata = SkillMetadata::new("work", "Works.", &["test"]);
}

impl SkillHandler<Asked> for Work {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        said: String,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        self.0.note(cx, &said);
        if said.starts_with("ask") {
            return OnRequestResult::ask("and?", Asked);
        }
        OnRequestResult::done(said)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Asked,
        said: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        self.0.note(cx, said.text()?);
        OnInputResult::done(said.text()?.to_owned())
    }
}

/// Makes no task without a key.
struct Greet(Starts);

impl Skill for Greet {
    const METADATA: SkillMetadata = SkillMetadata::new("greet", "Replies.", &["test"]);
}

impl SkillHandler for Greet {
    type Input = String;
    type Output = NoOutput;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        said: String,
    ) -> AgentResult<OnRequestResult<NoOutput>> {
        self.0.note(cx, &said);
        Ok(OnRequestResult::Message {
            message: Content::from_text(said),
        })
    }
}

/// The use of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// A new task.
    Task,
    /// An answer in a task.
    Answer,
    /// A new task of a skill that replies with a message.
    Reply,
    /// A new task, identified by the id of its message instead of a key.
    MessageId,
    /// A new task with an id that a client of A2A 0.1 made.
    OwnId,
}

const KINDS: [Kind; 5] = [
    Kind::Task,
    Kind::Answer,
    Kind::Reply,
    Kind::MessageId,
    Kind::OwnId,
];

/// The sends of one key.
struct Keyed<'s> {
    fixture: &'s Fixture,
    n: usize,
    kind: Kind,
    /// The task of each caller that asked a question, if the kind needs one.
    questions: Vec<String>,
}

impl Keyed<'_> {
    fn dialect(&self, send: usize) -> Dialect {
        match self.kind {
            Kind::OwnId => [Dialect::Rpc01, Dialect::Path01][send % 2],
            _ => NEWER[send % NEWER.len()],
        }
    }

    /// The request of `caller` for the send of this number.
    fn request(&self, send: usize, caller: usize, text: &str) -> Request {
        let dialect = self.dialect(send);
        let (key, own) = (format!("key {}", self.n), format!("own:{}", self.n));
        let say = match self.kind {
            Kind::Answer => Say::in_task(&self.questions[caller], text),
            Kind::Reply => Say::to("greet", text),
            _ => Say::to("work", text).under(&own),
        };
        let mut params = dialect.say(&say);
        if self.kind == Kind::MessageId {
            params["message"]["messageId"] = json!(key);
            return dialect.request(Op::Send, "", &params);
        }
        match send / CALLERS.len() % 3 {
            0 => params["message"]["metadata"][METADATA] = json!(key),
            1 => params["metadata"] = json!({ METADATA: key }),
            _ => {
                let request = dialect.request(Op::Send, "", &params);
                return request.header("idempotency-key", &key);
            }
        }
        dialect.request(Op::Send, "", &params)
    }

    /// The id of the task in the response to a send.
    fn answered(&self, dialect: Dialect, reply: &Reply) -> String {
        assert_eq!(reply.status, 200, "{:?} {}", self.kind, reply.text());
        let task = dialect.task(reply);
        assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
        task["id"].as_str().unwrap().to_owned()
    }

    /// Runs all sends in parallel. Returns the ids that each caller got.
    async fn burst(&self) -> BTreeMap<usize, BTreeSet<String>> {
        let text = format!("say {}", self.n);
        let sends = (0..SENDS).map(|send| {
            let caller = send % CALLERS.len();
            let request = self.request(send, caller, &text);
            async move {
                let reply = self.fixture.call(&request, CALLERS[caller]).await;
                (caller, self.answered(self.dialect(send), &reply))
            }
        });
        let mut got: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (caller, id) in join_all(sends).await {
            got.entry(caller).or_default().insert(id);
        }
        got
    }

    async fn ask(&mut self) {
        for caller in CALLERS {
            let text = format!("ask {}", self.n);
            let dialect = Dialect::Rest10;
            let request = dialect.send(&Say::to("work", &text));
            let request = request.header("idempotency-key", &text);
            let task = dialect.task(&self.fixture.call(&request, caller).await);
            self.questions.push(task["id"].as_str().unwrap().to_owned());
        }
    }

    async fn is_done_once_for_each_caller(&mut self) {
        if self.kind == Kind::Answer {
            self.ask().await;
        }
        let (first, second) = (self.burst().await, self.burst().await);
        assert_eq!(first, second, "{:?} {}", self.kind, self.n);
        assert_eq!(first.len(), CALLERS.len());
        assert!(first.values().all(|ids| ids.len() == 1), "{first:?}");
        let distinct: BTreeSet<_> = first.values().flatten().collect();
        let ids = if self.kind == Kind::OwnId {
            1
        } else {
            CALLERS.len()
        };
        assert_eq!(distinct.len(), ids, "{:?} {first:?}", self.kind);
        // A key with other content is refused in every protocol version.
        for send in 0..NEWER.len() {
            let caller = send % CALLERS.len();
            let request = self.request(send, caller, "something else");
            let reply = self.fixture.call(&request, CALLERS[caller]).await;
            let fault = Fault::new(self.dialect(send), KEY_REUSED);
            assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
        }
    }
}

/// The number of tasks of a caller.
async fn total(fixture: &Fixture, caller: &str) -> Value {
    let list = Dialect::Rest10.request(Op::List, "", &json!({"pageSize": 1}));
    let reply = fixture.call(&list, caller).await;
    reply.json()["totalSize"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_sends_of_a_key_run_once_for_each_caller() {
    each_row_async(Place::ALL, async |place| {
        let starts = Starts::default();
        let agent = Agent::builder("keys").version("1").description("Counts.");
        let agent = agent
            .skill(Work(starts.clone()))
            .skill(Greet(starts.clone()));
        let by_message = |settings: &mut a2a_lambda::settings::Settings| {
            settings.policy.idempotent_message_id = true;
        };
        let fixture = Fixture::at(place, agent.build().unwrap(), by_message);
        let fixture = &fixture.await.unwrap();
        let begun = std::time::Instant::now();
        let keys = (0..KEYS).map(|n| async move {
            let mut keyed = Keyed {
                fixture,
                n,
                kind: KINDS[n % KINDS.len()],
                questions: Vec::new(),
            };
            keyed.is_done_once_for_each_caller().await;
        });
        let keys = futures::stream::iter(keys).buffer_unordered(8);
        keys.collect::<Vec<()>>().await;
        println!(
            "{place:?}: {KEYS} keys, {SENDS} sends twice, in {:?}",
            begun.elapsed()
        );
        let started = starts.0.lock().unwrap().clone();
        let questions = KEYS / KINDS.len();
        assert_eq!(started.len(), CALLERS.len() * (KEYS + questions));
        let again: Vec<_> = started.iter().filter(|(_, times)| **times != 1).collect();
        assert!(again.is_empty(), "{place:?}: {again:?}");
        // A question and its answer are one task.
        each_row_async(CALLERS, async |caller| {
            assert_eq!(total(fixture, caller).await, KEYS, "{place:?} {caller}");
        })
        .await;
    })
    .await;
}
