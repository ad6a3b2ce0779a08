//! The limit of 1 MiB for the values of a task and of a thread, to the byte, in memory and
//! in a table.

use a2a_lambda::skill::{
    Agent, AgentDefinition, AgentResult, Content, OnInputResult, OnRequestResult, Skill,
    SkillHandler, SkillMetadata, SkillSlot, TaskContext,
};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Say, at};
use a2a_lambda_tests::fixture::{Fixture, Place};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const D: Dialect = Dialect::Rest10;
const ANN: &str = "acme:ann";
const LIMIT: usize = 1024 * 1024;
/// Sizes around the limit inside an item (32 KiB), of an event batch (200 KiB), of an item
/// (400 KiB) and of all values (1 MiB).
const TAKEN: [usize; 8] = [
    31 * 1024,
    33 * 1024,
    199 * 1024,
    201 * 1024,
    399 * 1024,
    401 * 1024,
    LIMIT - 1,
    LIMIT,
];

/// The size and the limit that an error names for one byte too many.
const REPORTED: (u64, u64) = (1_048_577, 1_048_576);

/// Keeps a text of the requested length for its task or its thread, and asks a question.
/// The answer completes the task with the length of the kept text.
struct Keeps;

#[derive(Serialize, Deserialize)]
struct Asked;

impl SkillSlot for Asked {}

impl Skill for Keeps {
    const METADATA: SkillMetadata = SkillMetadata::new("keeps", "Keeps things.", &["test"]);
}

impl SkillHandler<Asked> for Keeps {
    type Input = String;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        said: String,
    ) -> AgentResult<OnRequestResult<String, Asked>> {
        let (kept_by, length) = said.split_once(' ').unwrap_or_default();
        let text = "x".repeat(length.parse().unwrap_or_default());
        match kept_by {
            "task" => cx.save_data("k", &text).await?,
            "conversation" => cx.save_session("k", &text)?,
            _ => {}
        }
        OnRequestResult::ask("and?", Asked)
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        _: Asked,
        _: Content,
    ) -> AgentResult<OnInputResult<String, Asked>> {
        let of_task: Option<String> = cx.load_data("k")?;
        let of_context: Option<String> = cx.load_session("k").await?;
        let kept = of_task.or(of_context);
        OnInputResult::done(kept.map_or(0, |text| text.len()).to_string())
    }
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("keeps").version("1").description("Keeps.");
    agent.skill(Keeps).build().unwrap()
}

async fn says(fixture: &Fixture, say: &Say<'_>) -> Value {
    let reply = fixture.call(&D.send(say), ANN).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    D.task(&reply)
}

/// Keeps a text of this length in a context of this name. Returns its task.
async fn keep(fixture: &Fixture, kept_by: &str, length: usize, context: &str) -> Value {
    let text = format!("{kept_by} {length}");
    says(fixture, &Say::to("keeps", &text).in_context(context)).await
}

/// The length of the text that an answer in the task finds.
async fn kept(fixture: &Fixture, task: &Value) -> String {
    let id = task["id"].as_str().unwrap();
    let task = says(fixture, &Say::in_task(id, "how much?")).await;
    assert_eq!(D.state(&task), "completed", "{task}");
    D.words(&task["artifacts"][0])
}

/// The size and the limit that the error of a failed task names.
fn refused(task: &Value) -> (u64, u64) {
    assert_eq!(D.state(task), "failed", "{task}");
    let reported = at(task, "/status/message/metadata");
    assert_eq!(
        reported["a2a-lambda/errorCode"], "STATE_TOO_LARGE",
        "{task}"
    );
    let details = &reported["a2a-lambda/errorDetails"];
    let number = |name: &str| details[name].as_u64().unwrap();
    (number("current"), number("allowed"))
}

/// The bytes that count in addition to the text.
async fn besides(fixture: &Fixture, kept_by: &str) -> usize {
    let over = |task: &Value, allowed: usize| usize::try_from(refused(task).0).unwrap() - allowed;
    let large = keep(fixture, kept_by, 2 * LIMIT, "mine:large").await;
    let besides = over(&large, 2 * LIMIT);
    // The slot of a question is kept with its task, and counts after the value.
    let whole = keep(fixture, kept_by, LIMIT - besides, "mine:whole").await;
    match D.state(&whole).as_str() {
        "failed" => besides + over(&whole, LIMIT),
        _ => besides,
    }
}

#[tokio::test]
async fn tasks_and_threads_keep_1_mib_and_not_a_byte_more() {
    each_row_async(Place::ALL, async |place| {
        let fixture = Fixture::at(place, agent(), |_| ()).await.unwrap();
        for kept_by in ["task", "conversation"] {
            let besides = besides(&fixture, kept_by).await;
            each_row_async(TAKEN, async |size| {
                let context = format!("mine:{kept_by}-{size}");
                let length = size - besides;
                let task = keep(&fixture, kept_by, length, &context).await;
                assert_eq!(D.state(&task), "input-required", "{place:?} {size} {task}");
                assert_eq!(kept(&fixture, &task).await, length.to_string());
                if kept_by == "task" {
                    return;
                }
                // A larger value replaces nothing, and the context remains usable.
                let more = keep(&fixture, kept_by, LIMIT + 1 - besides, &context).await;
                assert_eq!(refused(&more), REPORTED, "{place:?} {size}");
                let next = keep(&fixture, "nothing", 0, &context).await;
                assert_eq!(kept(&fixture, &next).await, length.to_string(), "{place:?}");
            })
            .await;
            let more = keep(&fixture, kept_by, LIMIT + 1 - besides, "mine:more").await;
            assert_eq!(refused(&more), REPORTED, "{place:?} {kept_by}");
        }
    })
    .await;
}
