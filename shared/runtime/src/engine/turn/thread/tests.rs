use crate::engine::doubles::{ann, send_command, sent_task, services};
use crate::engine::{Engine, Policy};
use crate::prelude::*;
use crate::store::memory::MemoryStore;
use crate::task::{ContextId, SendMode, TaskState};
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// Counts in the session, in a step or outside, and says the count.
#[skill(id = "count-up", tags = ["test"])]
async fn count_up(cx: &mut TaskContext<'_>, way: String) -> AgentResult<String> {
    let add = || cx.update_session("count", |count: Option<u32>| count.unwrap_or(0) + 1);
    tokio::time::sleep(Duration::from_millis(400)).await;
    match way.as_str() {
        "step" => cx.step("add", async { add() }).await?,
        "outside" => add()?,
        "spoilt" => cx.update_session("count", |text: Option<String>| text.unwrap_or_default())?,
        _ => {}
    }
    let count = cx.load_session::<u32>("count").await?;
    Ok(count.unwrap_or(0).to_string())
}

fn engine() -> Engine {
    let memory = Arc::new(MemoryStore::new());
    let agent = Agent::builder("counter").skill(count_up).build().unwrap();
    let services = services(&memory);
    Engine::new(Arc::new(agent), services, Policy::default())
}

async fn send(engine: &Engine, text: &str, context: &str) -> (TaskState, String) {
    let mut command = send_command(text, SendMode::Blocking);
    command.message.context_id = Some(ContextId::parse(context).unwrap());
    let task = sent_task(engine, &ann(), command).await;
    let artifacts = task.artifacts.unwrap_or_default();
    let part = artifacts
        .first()
        .and_then(|artifact| artifact.parts.first());
    let text = part.map(|part| format!("{:?}", part.content));
    (task.status.state, text.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn parallel_tasks_of_a_conversation_lose_no_count() {
    for way in ["outside", "step"] {
        let engine = engine();
        // The context has a thread before its tasks race for it.
        send(&engine, "look", "c").await;
        let tasks = join_all((0..6).map(|_| send(&engine, way, "c"))).await;
        assert!(
            tasks
                .iter()
                .all(|(state, _)| *state == TaskState::Completed),
            "{way}"
        );
        let (_, count) = send(&engine, "look", "c").await;
        assert!(count.contains("\"6\""), "{way}: {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_update_of_another_type_fails_its_task_alone() {
    let engine = engine();
    send(&engine, "outside", "c").await;
    let (state, _) = send(&engine, "spoilt", "c").await;
    assert_eq!(state, TaskState::Failed);
    let (_, count) = send(&engine, "look", "c").await;
    assert!(count.contains("\"1\""), "{count}");
}
