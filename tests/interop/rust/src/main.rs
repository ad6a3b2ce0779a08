//! Walks the conformance agent with the official Rust client (`a2a-client-lf`), over one
//! binding. `../README.md` lists the promises.

use a2a::{
    CancelTaskRequest, GetTaskRequest, ListTasksRequest, Message, Part, PartContent, Role,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskState,
};
use a2a_client::agent_card::AgentCardResolver;
use a2a_client::{A2AClient, A2AClientFactory, Transport};
use futures::StreamExt as _;
use serde_json::json;
use std::process::ExitCode;

type Client = A2AClient<Box<dyn Transport>>;
type Step<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The error codes of A2A 1.0 §5.4.
const NOT_FOUND: i32 = -32001;
const UNSUPPORTED: i32 = -32004;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(base), Some(binding)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: rust-walk URL BINDING (JSONRPC or HTTP+JSON)");
        return ExitCode::from(2);
    };
    match walk(&base, &binding).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn walk(base: &str, binding: &str) -> Step {
    let card = AgentCardResolver::new(None).resolve(base).await?;
    let offered = card.supported_interfaces.iter();
    check(
        offered
            .map(|it| &it.protocol_binding)
            .any(|it| it == binding),
        "the card offers it",
    )?;
    let factory = A2AClientFactory::builder();
    let factory = factory.preferred_bindings(vec![binding.to_owned()]).build();
    let (client, chosen) = factory.create_from_card_with_interface(&card).await?;
    same("the binding", chosen.protocol_binding.as_str(), binding)?;

    let done = text_is_echoed(&client).await?;
    data_is_added(&client).await?;
    a_file_comes_back(&client).await?;
    unknown_and_finished_tasks_are_refused(&client, &done).await?;
    a_stream_shows_each_chunk(&client).await?;
    an_error_on_a_stream_is_read(&client, &done).await?;
    a_second_turn_continues(&client).await?;
    a_subscriber_sees_the_cancel(&client).await?;
    Ok(())
}

/// A blocking send, a read with its history, and a list of the context.
async fn text_is_echoed(client: &Client) -> Step<Task> {
    let task = task(
        client
            .send_message(&send(vec![Part::text("echo hello")]))
            .await?,
    )?;
    same("the state", &task.status.state, &TaskState::Completed)?;
    same(
        "the artifact",
        artifact_text(&task),
        "echo: hello".to_owned(),
    )?;
    let read = client.get_task(&get(&task.id, Some(1))).await?;
    same("the history", read.history.map(|it| it.len()), Some(1))?;
    let none = client.get_task(&get(&task.id, Some(0))).await?;
    same("no history", none.history.map_or(0, |it| it.len()), 0)?;
    let listed = client
        .list_tasks(&ListTasksRequest {
            context_id: Some(task.context_id.clone()),
            status: None,
            page_size: None,
            page_token: None,
            history_length: None,
            status_timestamp_after: None,
            include_artifacts: None,
            tenant: None,
        })
        .await?;
    let ids: Vec<&String> = listed.tasks.iter().map(|it| &it.id).collect();
    same("the list", ids, vec![&task.id])?;
    Ok(task)
}

async fn data_is_added(client: &Client) -> Step {
    let parts = vec![Part::text("sum"), Part::data(json!({"a": 19, "b": 23}))];
    let task = task(client.send_message(&send(parts)).await?)?;
    same("the sum", artifact_text(&task), "sum: 42".to_owned())
}

async fn a_file_comes_back(client: &Client) -> Step {
    let bytes: Vec<u8> = (0..=255).collect();
    let file = Part::raw(bytes.clone())
        .with_media_type("application/octet-stream")
        .with_filename("all.bin");
    let task = task(
        client
            .send_message(&send(vec![Part::text("back"), file]))
            .await?,
    )?;
    let part = task
        .artifacts
        .iter()
        .flatten()
        .flat_map(|it| &it.parts)
        .next();
    let part = part.ok_or("no part came back")?;
    same("the name", part.filename.as_deref(), Some("all.bin"))?;
    same("the bytes", &part.content, &PartContent::Raw(bytes))
}

async fn unknown_and_finished_tasks_are_refused(client: &Client, done: &Task) -> Step {
    let unknown = "task-00000000000000000000000000000000".to_owned();
    let refused = client.get_task(&get(&unknown, None)).await;
    same(
        "an unknown task",
        refused.err().map(|it| it.code),
        Some(NOT_FOUND),
    )?;
    let mut again = send(vec![Part::text("echo again")]);
    again.message.task_id = Some(done.id.clone());
    let refused = client.send_message(&again).await;
    same(
        "a finished task",
        refused.err().map(|it| it.code),
        Some(UNSUPPORTED),
    )
}

async fn a_stream_shows_each_chunk(client: &Client) -> Step {
    let request = send(vec![Part::text("chunks 3 20")]);
    let mut events = client.send_streaming_message(&request).await?;
    let (mut text, mut states) = (String::new(), Vec::new());
    while let Some(event) = events.next().await {
        match event? {
            StreamResponse::Task(task) => states.push(task.status.state),
            StreamResponse::StatusUpdate(update) => states.push(update.status.state),
            StreamResponse::ArtifactUpdate(update) => {
                let parts = update.artifact.parts.iter();
                text.extend(parts.filter_map(Part::as_text));
            }
            StreamResponse::Message(_) => return Err("a message on a task's stream".into()),
        }
    }
    same("the text", text.as_str(), "chunk-1 chunk-2 chunk-3 ")?;
    same("the end", states.last(), Some(&TaskState::Completed))
}

async fn an_error_on_a_stream_is_read(client: &Client, done: &Task) -> Step {
    let mut again = send(vec![Part::text("echo again")]);
    again.message.task_id = Some(done.id.clone());
    let refused = match client.send_streaming_message(&again).await {
        Ok(mut events) => events.next().await.and_then(Result::err),
        Err(error) => Some(error),
    };
    let code = refused.map(|error| error.code);
    same("a finished task", code, Some(UNSUPPORTED))?;
    let failing = send(vec![Part::text("fail")]);
    let mut events = client.send_streaming_message(&failing).await?;
    let mut newest = None;
    while let Some(event) = events.next().await {
        newest = Some(event?);
    }
    let state = match newest {
        Some(StreamResponse::StatusUpdate(update)) => Some(update.status.state),
        _ => None,
    };
    same("an error after the first event", state, Some(TaskState::Failed))
}

async fn a_second_turn_continues(client: &Client) -> Step {
    let asked = task(
        client
            .send_message(&send(vec![Part::text("hello?")]))
            .await?,
    )?;
    same("a question", &asked.status.state, &TaskState::InputRequired)?;
    let mut answer = send(vec![Part::text("echo done")]);
    answer.message.task_id = Some(asked.id.clone());
    answer.message.context_id = Some(asked.context_id.clone());
    let done = task(client.send_message(&answer).await?)?;
    same("the task", &done.id, &asked.id)?;
    same("the answer", artifact_text(&done), "echo: done".to_owned())
}

async fn a_subscriber_sees_the_cancel(client: &Client) -> Step {
    let mut request = send(vec![Part::text("wait 60")]);
    request.configuration = Some(SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately: Some(true),
    });
    let started = task(client.send_message(&request).await?)?;
    let subscription = SubscribeToTaskRequest {
        id: started.id.clone(),
        tenant: None,
    };
    let mut events = client.subscribe_to_task(&subscription).await?;
    let Some(Ok(StreamResponse::Task(first))) = events.next().await else {
        return Err("the first event is not the task".into());
    };
    same("the task", &first.id, &started.id)?;
    let cancel = CancelTaskRequest {
        id: started.id.clone(),
        metadata: None,
        tenant: None,
    };
    let canceled = client.cancel_task(&cancel).await?;
    same("the cancel", canceled.status.state, TaskState::Canceled)?;
    let mut last = None;
    while let Some(event) = events.next().await {
        if let StreamResponse::StatusUpdate(update) = event? {
            last = Some(update.status.state);
        }
    }
    same("the last event", last, Some(TaskState::Canceled))?;
    let again = client.cancel_task(&cancel).await?;
    same("a second cancel", again.status.state, TaskState::Canceled)
}

fn send(parts: Vec<Part>) -> SendMessageRequest {
    SendMessageRequest {
        message: Message::new(Role::User, parts),
        configuration: None,
        metadata: None,
        tenant: None,
    }
}

fn get(id: &str, history_length: Option<i32>) -> GetTaskRequest {
    GetTaskRequest {
        id: id.to_owned(),
        history_length,
        tenant: None,
    }
}

fn task(response: SendMessageResponse) -> Step<Task> {
    match response {
        SendMessageResponse::Task(task) => Ok(task),
        SendMessageResponse::Message(message) => Err(format!("no task: {message:?}").into()),
    }
}

fn artifact_text(task: &Task) -> String {
    let parts = task.artifacts.iter().flatten().flat_map(|it| &it.parts);
    parts.filter_map(Part::as_text).collect()
}

fn check(holds: bool, what: &str) -> Step {
    if holds { Ok(()) } else { Err(what.into()) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Step {
    check(
        found == wanted,
        &format!("{what}: {found:?}, not {wanted:?}"),
    )
}
