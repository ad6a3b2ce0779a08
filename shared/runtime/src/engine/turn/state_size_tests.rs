//! How much a skill may keep, to the byte.

use crate::auth::Caller;
use crate::engine::CallBudget;
use crate::engine::{Engine, Policy, Services};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::store::stored;
use crate::task::{
    Generation, Message, Owner, Part, Saved, SavedSlot, SendCommand, SendMode, SendResponse,
    StepOutcome, StepResult, Subject, Task, TaskRecord, TaskState, TenantId, Timestamp,
};
use a2a_lambda_rows::each_row_async;
use serde_json::{Value, json};
use std::sync::Arc;

const LIMIT: usize = 1024 * 1024;

/// Keeps a text of the requested length in the requested way, then asks a question.
#[skill(id = "keep", tags = ["test"], input_modes = ["text/plain"])]
struct Keep;

#[derive(serde::Serialize, serde::Deserialize)]
struct Kept(String);

impl SkillSlot for Kept {}

impl SkillHandler<Kept> for Keep {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: String,
    ) -> AgentResult<OnRequestResult<String, Kept>> {
        let (way, length) = input.split_once(' ').unwrap();
        let text = "x".repeat(length.parse().unwrap());
        let mut slot = Kept(String::new());
        match way {
            "data" => cx.save_data("k", &text).await?,
            "data-anyway" => {
                cx.save_data("k", &"small").await?;
                let refused = cx.save_data("k", &text).await.unwrap_err();
                assert_eq!(refused.code().as_str(), "STATE_TOO_LARGE");
                assert_eq!(cx.load_data("k")?, Some("small".to_owned()));
            }
            "step" => {
                let done = text.clone();
                cx.step("s", async { Ok(done) }).await?;
            }
            _ => slot = Kept(text),
        }
        OnRequestResult::ask("what now?", slot)
    }

    async fn on_input_received(
        &self,
        _: &mut TaskContext<'_>,
        _: Kept,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Kept>> {
        OnInputResult::done("done".to_owned())
    }
}

fn caller() -> Caller {
    let owner = Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    Caller::behind(&owner, None)
}

/// The task that a send of `text` makes, as shown and as stored.
async fn task(text: String) -> (Task, TaskRecord) {
    let agent = Agent::builder("test").skill(Keep).build().unwrap();
    let store = Arc::new(MemoryStore::new());
    let services = Services::new(store.records.clone(), store.blobs.clone());
    let engine = Engine::new(Arc::new(agent), services, Policy::default());
    let command = SendCommand {
        message: Message::from_user("m-1", vec![Part::text(text)]),
        client_task_id: None,
        mode: SendMode::Blocking,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: serde_json::Map::new(),
        generation: Generation::V10,
        idempotency_key: None,
    };
    let sent = engine
        .send(&caller(), command, CallBudget::default())
        .await
        .unwrap();
    let SendResponse::Task(task) = sent else {
        panic!("{sent:?}")
    };
    let now = Timestamp::from_millis(0);
    let record = store.records.load(&caller().owner, &task.id, now).await;
    (*task, record.unwrap().unwrap())
}

/// The bytes that a task keeps if it keeps a text of `length` in this way.
fn kept(way: &str, length: usize) -> usize {
    let text = json!("x".repeat(length));
    let slot = |value: Value| SavedSlot {
        version: Kept::VERSION,
        value,
    };
    let mut saved = Saved {
        slot: Some(slot(json!(""))),
        ..Saved::default()
    };
    // As many digits as the clock has.
    let at = Timestamp::from_millis(1_700_000_000_000);
    match way {
        "data" => {
            saved.data.insert("k".to_owned(), text);
            let place = StepResult::from_save(1, at);
            saved.steps.insert("!k#1".to_owned(), place);
        }
        "step" => saved.complete_step(
            "s#1".to_owned(),
            StepResult {
                ordinal: 1,
                ..StepResult::at_place(StepOutcome::Value(text), Some(1), at)
            },
        ),
        _ => saved.slot = Some(slot(text)),
    }
    stored::saved_size(&saved)
}

#[tokio::test]
async fn a_task_keeps_exactly_up_to_its_limit() {
    for way in ["data", "step", "slot"] {
        let besides = kept(way, 0);
        each_row_async([399 * 1024, 401 * 1024, LIMIT - 1, LIMIT], async |size| {
            let (shown, stored) = task(format!("{way} {}", size - besides)).await;
            let asks = TaskState::InputRequired;
            assert_eq!(shown.status.state, asks, "{way} {size}: {shown:?}");
            assert_eq!(stored::saved_size(&stored.saved), size, "{way}");
        })
        .await;
        let (shown, stored) = task(format!("{way} {}", LIMIT + 1 - besides)).await;
        assert_eq!(shown.status.state, TaskState::Failed, "{way}");
        let reported = &shown.status.message.unwrap().metadata;
        assert_eq!(reported["a2a-lambda/errorCode"], "STATE_TOO_LARGE", "{way}");
        let details = &reported["a2a-lambda/errorDetails"];
        assert_eq!(details["current"], LIMIT + 1, "{way}");
        assert_eq!(details["allowed"], LIMIT, "{way}");
        assert_eq!(stored.saved, Saved::default(), "{way}");
    }
}

#[tokio::test]
async fn a_refused_value_leaves_the_previous_one() {
    let (shown, stored) = task(format!("data-anyway {}", 2 * LIMIT)).await;
    assert_eq!(shown.status.state, TaskState::InputRequired, "{shown:?}");
    assert_eq!(stored.saved.data["k"], "small");
}
