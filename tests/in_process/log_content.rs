//! No log line of the runtime has what a client sent, what a skill made, or a credential.
//!
//! Every secret of these tests contains `canary`, and every path that can log runs with a
//! subscriber for all levels.

use a2a_lambda::engine::{
    Clock as _, Policy, PushDelivery, PushDeliveryError, PushDispatcher, PushServices, RandomIds,
    SecretKeys, SendPush, relay, relay_pushes,
};
use a2a_lambda::outbound::AddressPolicy;
use a2a_lambda::prelude::*;
use a2a_lambda::store::queue::{PushItem, TaskImage, WorkItem};
use a2a_lambda::task::{Owner, Subject, TaskId, TenantId};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::dialect::{Dialect, Say};
use a2a_lambda_tests::log_lines::LogLines;
use a2a_lambda_tests::tester::Gate;
use a2a_lambda_tests::world::{Reply, Request, World};
use a2a_local::queue::LocalQueue;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DIALECT: Dialect = Dialect::Rest10;
/// Headers that no code reads. A line that prints a whole request would show them.
const UNREAD_HEADERS: [&str; 7] = [
    "cookie",
    "user-agent",
    "referer",
    "x-api-key",
    "x-forwarded-for",
    "tracestate",
    "baggage",
];
/// Seals the secrets of push configs.
const SECRET: [u8; 32] = [7; 32];

#[derive(Serialize, Deserialize)]
struct Kept {
    secret: String,
}

impl SkillSlot for Kept {}

/// Keeps the text in every place there is, and then does what its last word says.
#[skill(id = "keep", tags = ["test"])]
struct Keep;

impl SkillHandler<Kept> for Keep {
    type Input = Content;
    type Output = String;

    async fn on_request(
        &self,
        cx: &mut TaskContext<'_>,
        input: Content,
    ) -> AgentResult<OnRequestResult<String, Kept>> {
        let text = input.first_text().unwrap_or_default().to_owned();
        cx.send_intermediate_update(format!("{text} canary-update"))
            .await?;
        cx.send_partial_artifact(Artifact::from_text(
            "draft",
            format!("{text} canary-artifact"),
        ))
        .await?;
        cx.save_data("data", &format!("{text} canary-saved"))
            .await?;
        cx.save_session("session", &format!("{text} canary-session"))?;
        cx.add_event(format!("{text} canary-event"))?;
        cx.step("step", async { Ok(format!("{text} canary-step")) })
            .await?;
        end(cx, &text).await?;
        let secret = format!("{text} canary-slot");
        if text.ends_with("sign-in") {
            return Ok(OnRequestResult::AuthRequired {
                message: "canary-prompt".into(),
                slot: Kept { secret },
                auth: AuthHint::default(),
            });
        }
        if text.ends_with("done") {
            return OnRequestResult::done(format!("{text} canary-output"));
        }
        OnRequestResult::ask("canary-question", Kept { secret })
    }

    async fn on_input_received(
        &self,
        cx: &mut TaskContext<'_>,
        kept: Kept,
        content: Content,
    ) -> AgentResult<OnInputResult<String, Kept>> {
        end(cx, content.first_text().unwrap_or_default()).await?;
        OnInputResult::done(kept.secret)
    }
}

/// The ways in which a turn ends badly, each with content in its cause.
async fn end(cx: &TaskContext<'_>, text: &str) -> AgentResult<()> {
    let words: Value = json!({ "words": text });
    match text.split(' ').next_back().unwrap_or_default() {
        "number" => {
            // The text of the error quotes the value.
            serde_json::from_value::<u64>(words["words"].clone())?;
        }
        "shape" => {
            serde_json::from_str::<Kept>(&format!(r#"{{"{text}": 1}}"#))?;
        }
        "variant" => {
            serde_json::from_value::<Choice>(words["words"].clone())?;
        }
        "wrapped" => {
            let cause = serde_json::from_value::<u64>(words["words"].clone());
            return Err(cause
                .map_err(Wrapped)
                .err()
                .map_or_else(|| AgentError::internal("no error"), AgentError::from));
        }
        "provider" => {
            let cause = serde_json::from_value::<u64>(words["words"].clone());
            return Err(AgentError::model_provider(
                cause.err().ok_or_else(AgentError::canceled)?,
            ));
        }
        "incompatible" => {
            cx.load_data::<u64>("data")?;
        }
        "detail" => {
            return Err(
                AgentError::domain("OUT_OF_STOCK", format!("{text} canary-text"))
                    .with_detail("left", "canary-detail"),
            );
        }
        "panic" => panic!("{text} canary-panic"),
        _ => {}
    }
    Ok(())
}

#[derive(Deserialize)]
enum Choice {
    #[serde(rename = "a")]
    A,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to read the model's answer: {0}")]
struct Wrapped(#[source] serde_json::Error);

/// Declared `background`, so that a worker runs it.
#[skill(id = "later", tags = ["test"], background = true)]
async fn later(cx: &mut TaskContext<'_>, input: Content) -> AgentResult<String> {
    cx.send_intermediate_update("canary-update").await?;
    end(cx, input.first_text().unwrap_or_default()).await?;
    Ok("canary-output".to_owned())
}

fn agent(_: Gate) -> Result<AgentDefinition, BuildError> {
    Agent::builder("keeper")
        .description("Keeps secrets.")
        .version("1.0.0")
        .skill(Keep)
        .skill(later)
        .build()
}

fn world() -> World {
    World::serving(agent, |settings| {
        settings.policy.reach = AddressPolicy::Public;
        settings.policy.secrets = SecretKeys::from_keys([SECRET.to_vec()]);
    })
    .unwrap()
}

/// A message with a secret in each member that a client fills.
fn secretive(skill: &str, text: &str) -> Request {
    let request = DIALECT.send(&Say::to(skill, text));
    let mut body: Value = serde_json::from_slice(&request.body).unwrap();
    body["message"]["parts"] = json!([
        {"text": text},
        {"data": {"canary-name": "canary-data"}},
        {"raw": "Y2FuYXJ5LWJ5dGVz", "filename": "canary-file", "mediaType": "text/plain"},
        {"url": "https://files.example/canary-path?canary-query=canary", "mediaType": "text/plain"},
    ]);
    body["message"]["metadata"]["canary-metadata"] = json!("canary-value");
    body["message"]["extensions"] = json!(["https://ext.example/canary-message-extension"]);
    body["metadata"] = json!({"canary-call-metadata": "canary-call-value"});
    body["configuration"]["taskPushNotificationConfig"] = json!({
        "url": "https://hook.example/canary-hook?key=canary-key",
        "token": "canary-token",
        "authentication": {"scheme": "Bearer", "credentials": "canary-credentials"},
    });
    let mut request = request.header(
        "idempotency-key",
        &format!("canary-idempotency-{}", text.replace(' ', "-")),
    );
    for name in UNREAD_HEADERS {
        request = request.header(name, &format!("canary-{name}"));
    }
    request.target.push_str("?canary-parameter=canary-argument");
    request.body = body.to_string().into();
    request
}

fn is_clean(lines: &LogLines, after: &str) {
    for line in lines.text().lines() {
        let shown = line.contains("canary") || line.contains("Y2FuYXJ5");
        assert!(!shown, "{after}: {line}");
    }
}

const ENDS: [&str; 10] = [
    "number",
    "shape",
    "variant",
    "wrapped",
    "provider",
    "incompatible",
    "detail",
    "panic",
    "done",
    "ask",
];

#[tokio::test(start_paused = true)]
async fn no_send_or_stream_logs_content_however_its_turn_ends() {
    let world = world();
    let lines = LogLines::default();
    let _guard = lines.capture();
    each_row_async(ENDS, async |end| {
        let text = format!("canary {end}");
        let reply = world.call(&secretive("keep", &text)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        is_clean(&lines, &text);
        let failed = DIALECT.state(&DIALECT.task(&reply)) == "failed";
        assert_eq!(failed, !["done", "ask"].contains(&end), "{end}");
        // The status of a failed task is public, the rest of its cause is not.
        let streamed = DIALECT.stream(&Say::to("keep", &text));
        world.call(&streamed).await;
        is_clean(&lines, &text);
    })
    .await;
    let calls = lines.with_message("call");
    let ran_turns = calls.iter().filter(|line| line["a2a.attempt"].is_u64());
    assert_eq!(ran_turns.count(), 2 * ENDS.len());
    // The category of a cause is logged.
    assert!(
        lines.text().contains("invalid type: string"),
        "{}",
        lines.text()
    );
}

#[tokio::test(start_paused = true)]
async fn no_answer_to_a_question_is_logged() {
    let world = world();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let task_of = |reply: &Reply| DIALECT.task(reply)["id"].as_str().unwrap().to_owned();
    for (first, second) in [
        ("canary ask", "canary number"),
        ("canary sign-in", "canary-password panic"),
        ("canary sign-in", "canary-password fine"),
    ] {
        let asked = world.call(&secretive("keep", first)).await;
        let task = task_of(&asked);
        world
            .call(&DIALECT.send(&Say::in_task(&task, second)))
            .await;
        is_clean(&lines, second);
    }
}

#[tokio::test(start_paused = true)]
async fn no_refused_call_logs_what_its_client_sent() {
    let world = world();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let send = DIALECT.send(&Say::to("keep", "canary done"));
    let list = DIALECT.versioned(Request::new("GET", "/tasks?pageToken=canary-token"));
    for request in [
        send.clone()
            .header("authorization", "Bearer canary-api-token"),
        send.clone().header("a2a-extensions", "canary-extension"),
        send.clone().header("content-type", "text/canary"),
        send.clone().body("{\"canary\": canary}"),
        send.clone()
            .body(r#"{"message": {"canary": "canary"}, "canary": 1}"#),
        DIALECT.send(&Say::to("canary-skill", "canary")),
        DIALECT.send(&Say::to("keep", "canary").in_context("ctx-canary with spaces")),
        list,
        Request::new("GET", "/canary-path?canary=canary"),
        Request::post(
            "/",
            &json!({"jsonrpc": "2.0", "id": "canary", "method": "canary"}),
        ),
        DIALECT
            .send(&Say::to("later", "canary done"))
            .header("last-event-id", "canary"),
    ] {
        world.call(&request).await;
        is_clean(&lines, &request.target);
    }
}

/// A webhook that refuses each delivery, and notes its trace.
#[derive(Default)]
struct Refuses(Mutex<Vec<String>>);

#[async_trait]
impl SendPush for Refuses {
    async fn post(&self, notice: &PushDelivery) -> Result<(), PushDeliveryError> {
        let trace = notice.trace.map(|trace| trace.to_string());
        self.0.lock().unwrap().push(trace.unwrap_or_default());
        Err(PushDeliveryError::Status(500))
    }
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    }
}

async fn image(world: &World, reply: &Reply) -> TaskImage {
    let task = DIALECT.task(reply);
    let id = TaskId::parse(task["id"].as_str().unwrap()).unwrap();
    let record = world
        .store
        .memory()
        .records
        .load(&owner(), &id, world.clock.now())
        .await;
    TaskImage::of(&record.unwrap().unwrap())
}

/// Runs the queued turn of `reply`, and one delivery of its push config.
async fn worked(world: &World, reply: &Reply, webhook: &Arc<Refuses>) {
    let turns: LocalQueue<WorkItem> = LocalQueue::new(world.clock.clone(), Duration::from_secs(60));
    let pushes: LocalQueue<PushItem> =
        LocalQueue::new(world.clock.clone(), Duration::from_secs(60));
    let images = [image(world, reply).await];
    assert!(relay(&turns, &images, world.clock.now()).await.is_empty());
    let delivery = turns.receive().await;
    world
        .engine()
        .turns
        .work(&delivery.item, &delivery.receipt, None)
        .await;
    let ended = image(world, reply).await;
    assert_eq!(relay_pushes(&pushes, &[ended]).await, 0);
    let dispatcher = PushDispatcher::new(
        PushServices {
            deliveries: world.store.memory().records.deliveries(),
            queue: Arc::new(pushes.clone()),
            webhooks: webhook.clone(),
            clock: world.clock.clone(),
            ids: Arc::new(RandomIds),
        },
        Policy {
            reach: AddressPolicy::Public,
            secrets: SecretKeys::from_keys([SECRET.to_vec()]),
            ..Policy::default()
        },
    );
    let delivery = pushes.receive().await;
    dispatcher.deliver(&delivery.item, None).await;
}

#[tokio::test(start_paused = true)]
async fn no_worker_and_no_webhook_logs_content() {
    let world = world();
    let lines = LogLines::default();
    let _guard = lines.capture();
    for end in ["done", "number", "panic", "detail"] {
        let text = format!("canary {end}");
        let request = secretive("later", &text).from("acme:ann");
        let reply = world.call(&immediate(request)).await;
        worked(&world, &reply, &Arc::default()).await;
        is_clean(&lines, &text);
    }
    assert_eq!(lines.with_message("turn").len(), 4);
    assert!(lines.text().contains("a push delivery of task"));
}

fn immediate(mut request: Request) -> Request {
    let mut body: Value = serde_json::from_slice(&request.body).unwrap();
    body["configuration"]["returnImmediately"] = json!(true);
    request.body = body.to_string().into();
    request
}

#[tokio::test(start_paused = true)]
async fn a_trace_reaches_the_worker_and_the_webhook() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    let world = world();
    let lines = LogLines::default();
    let _guard = lines.capture();
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let request = secretive("later", "done").from("acme:ann");
    let request = immediate(request).header("traceparent", &parent);
    let reply = world.call(&request).await;
    let webhook = Arc::new(Refuses::default());
    worked(&world, &reply, &webhook).await;
    let turns = lines.with_message("turn");
    assert_eq!(turns[0]["trace_id"], TRACE, "{turns:?}");
    let sent = webhook.0.lock().unwrap().clone();
    let first = sent.first().unwrap();
    assert!(first.starts_with(&format!("00-{TRACE}-")), "{first}");
    assert!(first.ends_with("-01") && *first != parent, "{first}");
}

#[tokio::test(start_paused = true)]
async fn only_a_turn_for_a_worker_stores_its_trace() {
    let world = World::new().unwrap();
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let say = Say::to("slow", "hi");
    let stream = DIALECT.stream(&say).from("acme:ann");
    let mut live = world.open(&stream.header("traceparent", parent)).await;
    let first = live.next().await.unwrap().unwrap();
    let task = |id: &str| TaskId::parse(id).unwrap();
    let id = task(first.data["task"]["id"].as_str().unwrap());
    let queued = DIALECT.send(&say).from("acme:ann");
    let queued = world
        .call(&immediate(queued).header("traceparent", parent))
        .await;
    let other = task(DIALECT.task(&queued)["id"].as_str().unwrap());
    for (id, kept) in [(id, None), (other, Some(parent))] {
        let record = world
            .store
            .memory()
            .records
            .load(&owner(), &id, world.clock.now())
            .await;
        let record = record.unwrap().unwrap();
        let request = record.request.as_ref();
        let trace = request.and_then(|request| request.trace_parent.as_deref());
        assert_eq!(trace, kept);
    }
}
