//! Tests turns that begin with an answer: its files, and its seal.

use super::*;
use crate::engine::SecretKeys;
use crate::store::Measured;
use crate::task::PartContent;
use bytes::Bytes;

/// The size of the file of `input`.
fn weighed(input: &Content) -> String {
    let file = input.first_file();
    let bytes = file.as_ref().and_then(FilePart::bytes);
    format!("{:?}", bytes.map(|bytes| bytes.len()))
}

/// Weighs a file.
#[skill(id = "weigh", tags = ["test"])]
async fn weigh(input: Content) -> AgentResult<String> {
    Ok(weighed(&input))
}

// With two skills that take a file, the router has to ask.
/// Weighs a file.
#[skill(id = "scale", tags = ["test"])]
async fn scale(input: Content) -> AgentResult<String> {
    Ok(weighed(&input))
}

#[tokio::test(start_paused = true)]
async fn file_sent_before_the_routers_question_reaches_the_skill() {
    for mode in [SendMode::Blocking, SendMode::Immediate] {
        let agent = Agent::builder("test").skill(weigh).skill(scale);
        let fixture = WorkerFixture::with(agent.build().unwrap(), Arc::default());
        let mut command = send_command("", SendMode::Blocking);
        let file = PartContent::Raw(vec![7; 40_000].into());
        command.message.parts = vec![Part::new(file)];
        let asked = sent_task(&fixture.engine, &ann(), command).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        let mut command = send_command("weigh", mode);
        command.message.task_id = Some(asked.id.clone());
        sent_task(&fixture.engine, &ann(), command).await;
        if mode == SendMode::Immediate {
            assert_eq!(fixture.work(&asked.id).await, Ack::Delete);
        }
        let record = fixture.record(&asked.id).await;
        let said = Artifact::from(record.artifacts[0].clone()).text().unwrap();
        assert_eq!(said, "Some(40000)", "{mode:?}");
    }
}

/// Asks for a file, and returns the SHA-256 of the bytes that come with the answer.
#[skill(id = "digest", tags = ["test"])]
struct Digests;

#[derive(serde::Serialize, serde::Deserialize)]
struct FileWanted;

impl SkillSlot for FileWanted {}

impl SkillHandler<FileWanted> for Digests {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: Content,
    ) -> AgentResult<OnRequestResult<String, FileWanted>> {
        OnRequestResult::ask("which file?", FileWanted)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: FileWanted,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, FileWanted>> {
        let file = answer.first_file();
        let bytes = file.as_ref().and_then(FilePart::bytes);
        let bytes = bytes.ok_or_else(|| AgentError::invalid_input("no bytes"))?;
        OnInputResult::done(Measured::of(bytes).sha256)
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_file_of_a_queued_answer_reaches_the_skill_unchanged() {
    let agent = Agent::builder("test").skill(Digests).build().unwrap();
    let fixture = WorkerFixture::with(agent, Arc::default());
    let asked = fixture.send("hi", SendMode::Blocking).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    let bytes: Bytes = (0..=250_u8).cycle().take(40_000).collect();
    let digest = Measured::of(&bytes).sha256;

    let mut answer = send_command("this one", SendMode::Immediate);
    answer.message.task_id = Some(asked.id.clone());
    let file = Part::new(PartContent::Raw(bytes));
    answer.message.parts.push(file);
    let queued = sent_task(&fixture.engine, &ann(), answer).await;
    assert_eq!(queued.status.state, TaskState::Submitted);
    // The record names the bytes and does not hold them.
    let record = fixture.record(&asked.id).await;
    let said = record.history.last().unwrap();
    let PartContent::Stored(blob) = &said.parts[1].content else {
        panic!("{:?}", said.parts);
    };
    assert_eq!((blob.size, &blob.sha256), (40_000, &digest));

    assert_eq!(fixture.work(&asked.id).await, Ack::Delete);
    let record = fixture.record(&asked.id).await;
    let made = Artifact::from(record.artifacts[0].clone());
    assert_eq!(made.text().unwrap(), digest);
}

/// Asks for a key, and returns what it gets.
#[skill(id = "login", tags = ["test"])]
struct Login;

#[derive(serde::Serialize, serde::Deserialize)]
struct KeyWanted;

impl SkillSlot for KeyWanted {}

impl SkillHandler<KeyWanted> for Login {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        _: &mut TaskContext<'_>,
        _: String,
    ) -> AgentResult<OnRequestResult<String, KeyWanted>> {
        OnRequestResult::ask_credentials("which key?", KeyWanted, AuthHint::default())
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: KeyWanted,
        answer: Content,
    ) -> AgentResult<OnInputResult<String, KeyWanted>> {
        OnInputResult::done(answer.text().unwrap_or_default().to_owned())
    }
}

/// An engine over the tasks of `fixture`, as another process with these secret keys has it.
fn beside(fixture: &WorkerFixture, keys: &[&str]) -> Engine {
    let keys = keys.iter().map(|key| key.as_bytes().to_vec());
    let policy = Policy {
        secrets: SecretKeys::from_keys(keys),
        ..Policy::default()
    };
    let mut services = services(&fixture.store);
    services.clock = Arc::clone(&fixture.engine.reader.clock);
    Engine::new(Arc::clone(&fixture.engine.turns.agent), services, policy)
}

/// A task whose queued answer is sealed under the key `new`.
async fn answered(fixture: &WorkerFixture) -> TaskId {
    let sender = beside(fixture, &["new", "old"]);
    let task = sent_task(&sender, &ann(), send_command("hi", SendMode::Blocking)).await;
    assert_eq!(task.status.state, TaskState::AuthRequired);
    let mut answer = send_command("the key", SendMode::Immediate);
    answer.message.task_id = Some(task.id.clone());
    sent_task(&sender, &ann(), answer).await;
    task.id
}

#[tokio::test(start_paused = true)]
async fn an_answer_under_a_newer_key_waits_until_a_worker_has_the_key() {
    let agent = Agent::builder("test").skill(Login).build().unwrap();
    let fixture = WorkerFixture::with(agent, Arc::default());
    let task = answered(&fixture).await;
    for _ in 0..2 {
        let worker = beside(&fixture, &["old"]);
        let item = fixture.item(&task).await;
        assert_eq!(
            worker.turns.work(&item, &fixture.line, None).await,
            Ack::Delete
        );
        assert!(!fixture.record(&task).await.state().is_at_rest());
        tokio::time::sleep(MINUTE).await;
    }
    let worker = beside(&fixture, &["new", "old"]);
    let item = fixture.item(&task).await;
    assert_eq!(
        worker.turns.work(&item, &fixture.line, None).await,
        Ack::Delete
    );
    let record = fixture.record(&task).await;
    assert_eq!(record.state(), TaskState::Completed);
    let made = Artifact::from(record.artifacts[0].clone());
    assert_eq!(made.text().unwrap(), "the key");
}

#[tokio::test(start_paused = true)]
async fn an_answer_under_a_lost_key_fails_its_task() {
    let agent = Agent::builder("test").skill(Login).build().unwrap();
    let fixture = WorkerFixture::with(agent, Arc::default());
    let task = answered(&fixture).await;
    let worker = beside(&fixture, &["other"]);
    // Every process reads the keys again in five minutes.
    for _ in 0..3 {
        assert!(!fixture.record(&task).await.state().is_at_rest());
        let item = fixture.item(&task).await;
        assert_eq!(
            worker.turns.work(&item, &fixture.line, None).await,
            Ack::Delete
        );
        tokio::time::sleep(3 * MINUTE).await;
    }
    let record = fixture.record(&task).await;
    assert_eq!(record.state(), TaskState::Failed);
    let message = record.status.message.clone().unwrap();
    assert_eq!(message.metadata["a2a-lambda/errorCode"], "MISSING_INPUT");
}
