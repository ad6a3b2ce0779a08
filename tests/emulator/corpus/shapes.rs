//! Writes the corpus: every kind of item, and every shape of task that a table can contain
//! during an upgrade.

use super::{Corpus, Endpoint, NOW, body, long, owner, this_release};
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::{CommitResult, KeyWrite, ThreadRecord, ThreadWrite};
use a2a_lambda::task::{
    Artifact, ArtifactUpdate, Change, ContextId, Generation, IdempotencyKey, Message, Metadata,
    OutputCounts, Part, PushId, SavedSlot, SkillId, StepOutcome, StepResult, TaskId, TaskRecord,
    Timestamp, TurnRequest, WriteId,
};
use a2a_lambda_tests::world::Request;
use serde_json::{Value, json};

const DAY: i64 = 86_400_000;

/// Makes the shapes one after the other.
struct Maker {
    site: Endpoint,
    sample: SampleData,
    made: u128,
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW + millis)
}

fn said(text: &str) -> Message {
    Message::from_user(
        "0b0c8f5e-7d4e-4a41-9f0d-2f5f3b1c9a77",
        vec![Part::text(text)],
    )
}

fn replies(text: &str) -> Message {
    Message::from_agent("msg-1", vec![Part::text(text)])
}

fn chunk(id: &str, text: &str, append: bool) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: id.to_owned(),
            name: Some("report".to_owned()),
            description: None,
            parts: vec![Part::text(text), Part::data(json!({"n": [1.5, null]}))],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append,
        last_chunk: !append,
        metadata: Metadata::new(),
    })
}

fn update(text: &str) -> Change {
    Change::Update {
        message: Some(replies(text)),
        metadata: Metadata::new(),
    }
}

fn keeps(key: &str, value: Value) -> Change {
    Change::Save {
        key: key.to_owned(),
        value,
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    }
}

fn step(outcome: StepOutcome) -> Change {
    Change::Step {
        key: "lookup#1".to_owned(),
        result: Box::new(StepResult {
            outcome,
            ordinal: 1,
            ..StepResult::default()
        }),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
    }
}

/// A step that the skill dropped: a turn may end without asking for it.
fn abandon() -> Change {
    step(StepOutcome::Abandoned)
}

fn start() -> Change {
    Change::Start {
        lease_until: at(60_000),
    }
}

fn asks() -> Change {
    Change::AskInput {
        message: replies("What should I do?"),
        slot: SavedSlot {
            version: 1,
            value: Value::Null,
        },
    }
}

fn asks_for_credentials() -> Change {
    Change::AskAuth {
        message: replies("Who are you?"),
        slot: SavedSlot {
            version: 1,
            value: Value::Null,
        },
    }
}

fn request() -> Change {
    Change::Request(TurnRequest {
        tier: "gold".to_owned(),
        scopes: ["tasks".to_owned()].into(),
        accepted_output_modes: vec!["text/plain".to_owned()],
        trace_parent: None,
        consent: Some("f".repeat(64)),
    })
}

impl Maker {
    async fn new() -> Self {
        Self {
            site: Endpoint::new().await,
            sample: SampleData::new(1, "corpus").unwrap(),
            made: 0,
        }
    }

    const fn number(&mut self) -> u128 {
        self.made += 1;
        self.made
    }

    fn write_id(&mut self) -> WriteId {
        WriteId::made_of(self.number())
    }

    /// Stores a task with this name as a client-made id.
    async fn begun(&mut self, name: &str, text: &str, with: Vec<Change>) -> TaskRecord {
        let id = TaskId::parse(name).unwrap();
        let context = ContextId::parse(format!("about-{name}")).unwrap();
        self.created(id, context, text, with).await
    }

    async fn created(
        &mut self,
        id: TaskId,
        context_id: ContextId,
        text: &str,
        with: Vec<Change>,
    ) -> TaskRecord {
        let write = self.write_id();
        let mut metadata = Metadata::new();
        metadata.insert("ticket".to_owned(), json!(4711));
        let task = TaskRecord::create(
            id,
            owner(),
            context_id,
            write.clone(),
            Generation::V03,
            metadata,
            at(0),
        );
        let mut changes = vec![
            Change::Accept {
                message: said(text),
            },
            Change::Pin(SkillId::parse("conformance").unwrap(), None),
        ];
        changes.extend(with);
        let mut task = task.next(changes, write, at(5), at(30 * DAY)).unwrap();
        a2a_lambda::store::stored::arrange(&mut task);
        self.sample
            .stored(&self.site.stores(), &task)
            .await
            .unwrap();
        task
    }

    /// The task after one more commit.
    async fn then(&mut self, task: &TaskRecord, changes: Vec<Change>) -> TaskRecord {
        let write = self.write_id();
        let now = at(i64::try_from(task.version).unwrap() * 1_000);
        let mut next = task.next(changes, write, now, at(30 * DAY)).unwrap();
        a2a_lambda::store::stored::arrange(&mut next);
        let write = self.sample.update(&next, task);
        let answer = self.site.records.commit(&write).await.unwrap();
        assert_eq!(answer, CommitResult::Done);
        next
    }

    async fn at_work(&mut self) {
        self.begun("queued", "echo queued", vec![request(), Change::Dispatch])
            .await;
        let task = self
            .begun("running", "echo running", vec![request(), start()])
            .await;
        self.then(
            &task,
            vec![
                update("half"),
                chunk("a-1", "so far", false),
                abandon(),
                keeps("k", json!([1])),
            ],
        )
        .await;
        // A turn that runs again takes back its output.
        let task = self
            .begun(
                "restarted",
                "echo restarted",
                vec![start(), chunk("a-1", "first", false)],
            )
            .await;
        let task = self.then(&task, vec![keeps("k", json!(1))]).await;
        let task = self
            .then(&task, vec![chunk("a-1", "second", false), update("lost")])
            .await;
        self.then(
            &task,
            vec![Change::Claim {
                lease_until: at(60_000),
            }],
        )
        .await;
        let task = self
            .begun("handed-over", "echo handed over", vec![request(), start()])
            .await;
        let task = self.then(&task, vec![abandon()]).await;
        self.then(&task, vec![Change::HandOver { progress: true }])
            .await;
        // A task with every kind of separate item, some of them with S3 objects.
        let words = noise(8, 3_000);
        let mut task = self.begun("grown", "echo grown", vec![start()]).await;
        for n in 0..4 {
            task = self
                .then(&task, vec![chunk("a-1", &words, n > 0), update(&words)])
                .await;
        }
        task = self.then(&task, vec![keeps("k", json!(long()))]).await;
        task = self.then(&task, vec![chunk("a-1", &long(), true)]).await;
        self.then(&task, vec![chunk("a-1", "end", true)]).await;
    }

    async fn at_rest(&mut self) {
        let task = self.begun("asking", "what?", vec![start()]).await;
        self.then(
            &task,
            vec![
                keeps("k", json!(0.1)),
                step(StepOutcome::Value(json!("found"))),
                asks(),
            ],
        )
        .await;
        let task = self.begun("asking-who", "auth", vec![start()]).await;
        self.then(&task, vec![asks_for_credentials()]).await;
        // The engine seals the answer to a request for credentials.
        self.begun("answered", "auth", vec![start(), asks_for_credentials()])
            .await;
        let answer = json!({
            "message": {"messageId": "secret-1", "role": "ROLE_USER", "taskId": "answered",
                "parts": [{"text": "echo secret"}]},
            "configuration": {"returnImmediately": true},
        });
        let reply = self.site.call(Request::post("/message:send", &answer));
        let reply = reply.await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let task = self.begun("done", "echo done", vec![start()]).await;
        let task = self
            .then(&task, vec![update("half"), chunk("a-1", "result", false)])
            .await;
        self.then(
            &task,
            vec![Change::Complete {
                message: Some(replies("That is it.")),
            }],
        )
        .await;
        let task = self.begun("failed", "fail", vec![start()]).await;
        self.then(
            &task,
            vec![Change::Fail {
                message: replies("It went wrong."),
            }],
        )
        .await;
        self.begun(
            "rejected",
            "reject",
            vec![Change::Reject {
                message: replies("No."),
            }],
        )
        .await;
        let task = self.begun("canceled", "wait 5", vec![start()]).await;
        self.then(&task, vec![Change::Cancel]).await;
        let task = self.begun("expired", "echo expired", vec![start()]).await;
        let write = self.write_id();
        let done = vec![Change::Complete { message: None }];
        let next = task.next(done, write, at(9), at(-1)).unwrap();
        let write = self.sample.update(&next, &task);
        self.site.records.commit(&write).await.unwrap();
    }

    async fn listened_to(&mut self) {
        for (name, rests) in [("heard", false), ("heard-to-its-end", true)] {
            let task = self.begun(name, "what?", vec![start()]).await;
            let mut push = self.sample.push(&task, &PushId::parse("hook").unwrap());
            push.created_at = at(0);
            let register = Change::RegisterPush(Box::new(push.registration.clone()));
            let task = self.then(&task, vec![register]).await;
            self.site
                .records
                .put_push(&push, task.kept_until)
                .await
                .unwrap();
            let task = self.then(&task, vec![update("news")]).await;
            if rests {
                self.then(&task, vec![Change::Complete { message: None }])
                    .await;
            }
        }
    }

    async fn conversation(&mut self, name: &str, change: impl Fn(&mut ThreadRecord)) {
        let id = ContextId::parse(name).unwrap();
        let mut record = ThreadRecord::new(owner(), id, at(0), at(0));
        record.version = 1;
        record.expires_at = at(DAY);
        record.state_expires_at = at(3_600_000);
        change(&mut record);
        let write = self.write_id();
        let write = ThreadWrite {
            record,
            expect: 0,
            write,
        };
        assert!(self.site.records.put_thread(&write).await.unwrap());
    }

    async fn conversations(&mut self) {
        self.conversation("about-nothing", |_| {}).await;
        self.conversation("about-asking", |thread| {
            thread.state_version = 1;
            thread.state.events = vec![replies("noted")];
            thread.state.session = [("seen".to_owned(), json!({"times": 2}))].into();
        })
        .await;
        self.conversation("about-much", |thread| {
            thread.state_version = 1;
            thread.state.session = [("k".to_owned(), json!(long()))].into();
        })
        .await;
        self.conversation("about-the-past", |thread| {
            thread.expires_at = at(-DAY);
        })
        .await;
        self.conversation("about-what-was-deleted", |thread| {
            thread.version = 0;
            *thread = thread.clone().clear(at(0));
        })
        .await;
        self.conversation("about-what-came-after", |_| {}).await;
    }

    async fn keyed(&mut self) {
        let context = ContextId::parse("about-keyed").unwrap();
        let write = self.write_id();
        let task = TaskRecord::create(
            TaskId::made_of(77),
            owner(),
            context,
            write.clone(),
            Generation::V10,
            Metadata::new(),
            at(0),
        );
        let opening = [
            Change::Accept {
                message: said("echo keyed"),
            },
            Change::Pin(SkillId::parse("conformance").unwrap(), None),
            start(),
        ];
        let task = task.next(opening, write, at(5), at(30 * DAY)).unwrap();
        let mut create = self.sample.create(&task);
        create.key = Some(KeyWrite {
            key: IdempotencyKey::parse("key-1").unwrap().hash(&owner()),
            content: "content".to_owned(),
        });
        self.site.records.commit(&create).await.unwrap();
    }

    /// The items that requests through the HTTP edge leave.
    async fn called(&mut self) {
        let send = |text: &str, id: &str| json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}});
        for (text, id, key) in [
            ("echo hello", "m1", None),
            ("what?", "m2", None),
            ("echo hello", "m3", Some("key-2")),
            ("", "tck-message-response-1", Some("key-3")),
        ] {
            let mut request = Request::post("/message:send", &send(text, id));
            if let Some(key) = key {
                request = request.header("idempotency-key", key);
            }
            let reply = self.site.call(request).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
    }

    async fn all(&mut self) -> Corpus {
        self.at_work().await;
        self.at_rest().await;
        self.listened_to().await;
        self.conversations().await;
        self.keyed().await;
        self.called().await;
        self.site.dump().await
    }
}

#[tokio::test]
#[ignore = "writes tests/corpus, see the README there"]
async fn write_the_corpus_of_this_release() {
    Maker::new().await.all().await.write(&this_release());
}

/// A change of the stored form must show as a change of the corpus.
#[tokio::test]
async fn this_source_writes_the_corpus_of_its_release() {
    let written = Maker::new().await.all().await;
    let kept = Corpus::read(&this_release());
    assert_eq!(written.items.len(), kept.items.len());
    for (one, other) in written.items.iter().zip(&kept.items) {
        assert_eq!(readable(one), readable(other));
    }
    let keys = |corpus: &Corpus| corpus.objects.keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&written), keys(&kept));
    assert_eq!(written.expected, kept.expected);
}

/// The item as it reads, whatever bytes the compressor has made.
fn readable(item: &Value) -> Value {
    let mut readable = item.clone();
    let members = readable.as_object_mut().unwrap();
    for bytes in ["object_size", "object_sha256"] {
        members.remove(bytes);
    }
    members.insert("body".to_owned(), body(item));
    readable
}
