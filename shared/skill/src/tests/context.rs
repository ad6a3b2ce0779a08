//! Tests what a handler can do during a turn.

use crate::model::{Delta, Model, ModelReply, ModelRequest, StopReason, Usage};
use crate::testing::{RecordingHost, block_on, caller, facts};
use crate::turn_host::References;
use crate::{
    AgentError, AgentResult, Artifact, ErrorCode, FilePart, FileSource, ReferencedTask,
    TaskContext, TurnFacts,
};
use a2a_lambda_model::task::{
    self, Generation, Metadata, Part, Status, Task, TaskId, TaskState, Timestamp,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt as _};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[test]
fn updates_and_artifacts_are_emitted_in_order() {
    let (host, facts) = (RecordingHost::default(), facts());
    let cx = TaskContext::new(&host, &facts);
    block_on(async {
        cx.send_intermediate_update("reading").await?;
        cx.send_partial_artifact(Artifact::from_text("draft", "one"))
            .await?;
        let mut report = cx.artifact_chunks("report.md");
        report.push("a").await?;
        report.push("b").await?;
        report.finish_with("c").await?;
        let mut log = cx.artifact_chunks("log");
        log.push("d").await?;
        log.finish().await?;
        AgentResult::Ok(())
    })
    .unwrap();
    let shown = [
        "reading",
        "draft=one",
        "report.md=a",
        "+report.md=b",
        "+report.md=c.",
        "log=d",
        "+log=.",
    ];
    assert_eq!(host.shown(), shown);
}

#[test]
fn a_step_that_has_completed_is_not_done_again() {
    let (host, facts) = (RecordingHost::default(), facts());
    let work = AtomicU32::new(0);
    let attempt = || {
        let cx = TaskContext::new(&host, &facts);
        block_on(async {
            let mut results = Vec::new();
            for _ in 0..2 {
                let done = cx.step("charge", async { Ok(work.fetch_add(1, Ordering::Relaxed)) });
                results.push(done.await?);
            }
            AgentResult::Ok(results)
        })
        .unwrap()
    };
    assert_eq!(attempt(), [0, 1]);
    host.again();
    assert_eq!(attempt(), [0, 1]);
    assert_eq!(work.load(Ordering::Relaxed), 2);
    let steps = host.steps.lock().unwrap().clone();
    assert_eq!(json!(steps), json!({"charge#1": 0, "charge#2": 1}));
}

#[test]
fn a_step_that_failed_is_done_again() {
    let (host, facts) = (RecordingHost::default(), facts());
    let cx = TaskContext::new(&host, &facts);
    let failed = block_on(cx.step::<()>("charge", async { Err(AgentError::network("down")) }));
    assert_eq!(failed.unwrap_err().code(), ErrorCode::Network);
    host.again();
    let done = block_on(cx.step("charge", async { Ok("paid".to_owned()) }));
    assert_eq!(done.unwrap(), "paid");
}

#[test]
fn a_stored_step_of_another_form_is_incompatible() {
    let (host, facts) = (RecordingHost::default(), facts());
    host.steps
        .lock()
        .unwrap()
        .insert("count#1".to_owned(), json!("three"));
    let cx = TaskContext::new(&host, &facts);
    let error = block_on(cx.step("count", async { Ok(3) })).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StateIncompatible);
}

#[test]
fn data_of_the_task_and_of_the_session_are_kept_apart() {
    let (host, facts) = (RecordingHost::default(), facts());
    let cx = TaskContext::new(&host, &facts);
    block_on(async {
        cx.save_data("city", &"Oslo").await?;
        cx.save_session("name", &"Ann")?;
        assert_eq!(cx.load_data::<String>("city")?.as_deref(), Some("Oslo"));
        assert_eq!(cx.load_data::<String>("name")?, None);
        let name = cx.load_session::<String>("name").await?;
        assert_eq!(name.as_deref(), Some("Ann"));
        assert_eq!(cx.load_session::<String>("city").await?, None);
        let error = cx.load_data::<u8>("city").unwrap_err();
        assert_eq!(error.code(), ErrorCode::StateIncompatible);
        AgentResult::Ok(())
    })
    .unwrap();
}

/// A model that answers with its system prompt.
struct Parrot;

impl Model for Parrot {
    fn converse(&self, request: ModelRequest) -> BoxFuture<'_, AgentResult<ModelReply>> {
        let reply = ModelReply {
            content: vec![crate::model::ModelContent::Text(request.system)],
            stop: StopReason::EndTurn,
            usage: Usage::default(),
        };
        std::future::ready(Ok(reply)).boxed()
    }

    fn converse_stream(
        &self,
        request: ModelRequest,
    ) -> BoxFuture<'_, AgentResult<BoxStream<'_, AgentResult<Delta>>>> {
        let deltas = stream::iter([Ok(Delta::Text(request.system))]).boxed();
        std::future::ready(Ok(deltas)).boxed()
    }
}

#[test]
fn model_call_without_a_model_is_an_error() {
    let host = RecordingHost::default();
    let without = facts();
    let cx = TaskContext::new(&host, &without);
    let Err(error) = cx.model() else {
        panic!("there is a model");
    };
    assert_eq!(error.code(), ErrorCode::ModelUnavailable);
    let with = TurnFacts {
        model: Some(Arc::new(Parrot)),
        ..facts()
    };
    let cx = TaskContext::new(&host, &with);
    let request = ModelRequest {
        system: "hello".to_owned(),
        ..ModelRequest::default()
    };
    let reply = block_on(cx.model().unwrap().converse(request)).unwrap();
    assert_eq!(reply.stop, StopReason::EndTurn);
}

fn earlier() -> Task {
    let artifact = |name: Option<&str>, texts: &[&str]| task::Artifact {
        chunks_of: None,
        id: "artifact-1".to_owned(),
        name: name.map(str::to_owned),
        description: None,
        parts: texts.iter().map(|text| Part::text(*text)).collect(),
        extensions: Vec::new(),
        metadata: Metadata::new(),
    };
    Task {
        id: TaskId::made_of(7),
        context_id: task::ContextId::made_of(7),
        generation: Generation::V10,
        status: Status {
            state: TaskState::Completed,
            message: None,
            timestamp: Timestamp::from_millis(0),
        },
        artifacts: Some(vec![
            artifact(Some("logo.svg"), &["<svg>", "</svg>"]),
            artifact(None, &["unnamed"]),
        ]),
        history: None,
        metadata: Metadata::new(),
        transitions: Vec::new(),
        last_event: None,
    }
}

#[test]
fn artifacts_of_a_referenced_task_are_found_by_name() {
    let references = References {
        tasks: vec![ReferencedTask::from(&earlier())],
        unknown_ids: vec!["task-x".to_owned()],
    };
    let host = RecordingHost {
        references,
        ..RecordingHost::default()
    };
    let facts = facts();
    let cx = TaskContext::new(&host, &facts);
    let references = block_on(cx.references()).unwrap();
    // `references` does not borrow the context, so an update is possible in between.
    block_on(cx.send_intermediate_update("looking")).unwrap();

    let mut newest_first = references.iter().rev();
    let logo = newest_first.find_map(|task| task.artifact("logo.svg"));
    assert_eq!(
        logo.and_then(Artifact::text).as_deref(),
        Some("<svg></svg>")
    );
    let unnamed = references[0].artifact("artifact-1").unwrap();
    assert_eq!(unnamed.text().as_deref(), Some("unnamed"));
    assert_eq!(references[0].state, TaskState::Completed);
    let others = block_on(cx.unresolved_references()).unwrap();
    assert_eq!(others, ["task-x"]);
}

#[test]
fn a_turn_knows_its_task_caller_and_time() {
    let host = RecordingHost::default();
    let facts = TurnFacts {
        turn: 3,
        accepted_output_modes: vec!["text/plain".to_owned()],
        ..facts()
    };
    let cx = TaskContext::new(&host, &facts);
    assert_eq!(cx.task_id(), &TaskId::made_of(1));
    assert_eq!(cx.context_id().first_task(), Some(TaskId::made_of(1)));
    assert_eq!((cx.turn(), cx.caller()), (3, &caller()));
    assert_eq!(cx.time_left(), Duration::from_secs(7));
    assert_eq!(cx.accepted_output_modes(), ["text/plain"]);
    assert!(block_on(cx.thread()).unwrap().is_empty());
}

#[test]
fn an_artifact_is_made_of_json_text_or_a_file() {
    let json = Artifact::from_json("a", &vec![1]).unwrap();
    assert_eq!((json.data(), json.text()), (Some(&json!([1])), None));
    let text = Artifact::from_text("b", "words").described("Words.");
    assert_eq!(text.description.as_deref(), Some("Words."));
    let file = Artifact::from_file("c.png", "image/png", vec![1, 2]);
    assert_eq!(file.parts[0].effective_media_type(), "image/png");
    assert_eq!(file.parts[0].filename.as_deref(), Some("c.png"));
    let stored = file.clone().into_task_artifact("artifact-9");
    assert_eq!(stored.id, "artifact-9");
    assert_eq!(Artifact::from(stored), file);
}

fn stored(size: u64) -> FilePart {
    FilePart {
        name: None,
        media_type: "application/pdf".to_owned(),
        source: FileSource::Stored(a2a_lambda_model::task::Blob {
            key: "k".to_owned(),
            size,
            sha256: String::new(),
            upload: None,
        }),
    }
}

#[tokio::test]
async fn file_too_long_for_memory_is_read_only_in_pieces() {
    let (host, facts) = (RecordingHost::default(), facts());
    let cx = TaskContext::new(&host, &facts);
    let fits = stored(TaskContext::READ_FILE_MAX);
    assert_eq!(cx.read_file(&fits).await.unwrap(), "the bytes of k");
    let large = stored(TaskContext::READ_FILE_MAX + 1);
    let error = cx.read_file(&large).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidInput);
    assert!(error.text().contains("33554433 bytes"), "{}", error.text());
    let mut reader: a2a_lambda_model::store::BlobReader =
        Box::pin(cx.open_file(&large).await.unwrap());
    let bytes = a2a_lambda_model::store::read_up_to(&mut reader, usize::MAX).await;
    assert_eq!(bytes.unwrap(), "the bytes of k");
}
