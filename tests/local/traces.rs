//! What the program records of turns: what is in a trace, what never is, and what remains.

use crate::agent::{Folder, Running};
use crate::calls::Call;
use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::llm::{LlmTool, LlmWorker};
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::skill::model::{Model as _, ModelMessage, ModelRequest};
use a2a_lambda::skill::{RecordTrace, TraceRow};
use a2a_lambda::task::{TaskKey, Timestamp, WriteId};
use a2a_lambda::testing::{Cassette, ScriptedModel};
use a2a_lambda_rows::each_row;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, Request};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A service with the API of `OpenAI` whose every answer is the text `Seven pieces.`.
async fn model_service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 20];
                let _read = socket.read(&mut request).await;
                let chunk = |delta: Value, finish: Value| {
                    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
                    let usage = json!({"prompt_tokens": 31, "completion_tokens": 4});
                    format!("data: {}\n\n", json!({"choices": [choice], "usage": usage}))
                };
                let body = chunk(json!({"content": "Seven "}), Value::Null)
                    + &chunk(json!({"content": "pieces."}), Value::Null)
                    + &chunk(json!({}), "stop".into())
                    + "data: [DONE]\n\n";
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
                let answer = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _gone = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    base
}

/// Reads what the page shows of a task.
struct Reader {
    base: String,
    token: String,
}

impl Reader {
    fn of(agent: &Running) -> Self {
        let (_, rest) = agent.said.split_once("/#token=").unwrap();
        Self {
            base: agent.base().to_owned(),
            token: rest.lines().next().unwrap().to_owned(),
        }
    }

    async fn get(&self, path: &str) -> Value {
        let call = Call::get(&format!("{}/a2a-local/page/{path}", self.base));
        call.header("X-A2A-Local-Token", &self.token).json().await
    }

    /// The rows of a task once `is_there`. They are written behind the turn.
    async fn rows(&self, id: &str, is_there: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        for _ in 0..200 {
            let inside = self.get(&format!("tasks/{id}")).await;
            let rows = inside["trace"].as_array().unwrap().clone();
            if is_there(&rows) {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!(
            "the trace does not have it: {}",
            self.get(&format!("tasks/{id}")).await
        );
    }
}

fn of_kind<'a>(rows: &'a [Value], kind: &str) -> Vec<&'a Value> {
    rows.iter().filter(|row| row["kind"] == kind).collect()
}

fn has_ended(rows: &[Value]) -> bool {
    of_kind(rows, "turn")
        .iter()
        .any(|row| row["state"] == "completed")
}

/// All bytes of the traces in a data folder.
fn bytes_of_traces(data: &Path) -> String {
    let files = std::fs::read_dir(data.join("traces")).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    texts.collect()
}

fn id_of(answer: &Value) -> &str {
    answer["task"]["id"].as_str().unwrap()
}

/// The answer of a cassette that has the request and the reply of a row.
async fn replayed(request: &Value, reply: &Value) -> String {
    let folder = Folder::new();
    let path = folder.path().join("cassette.json");
    let calls = json!([{"request": request, "reply": reply}]);
    std::fs::write(&path, calls.to_string()).unwrap();
    let request: ModelRequest = serde_json::from_value(request.clone()).unwrap();
    let replay = Cassette::replay(&path).unwrap();
    replay.converse(request).await.unwrap().text()
}

#[tokio::test]
async fn a_model_call_is_in_the_trace_with_its_prompt_and_reply_and_no_key() {
    let folder = Folder::new();
    let service = model_service().await;
    let settings = [
        ("A2A_MODEL_PROVIDER", "openai"),
        ("A2A_MODEL_ID", "stub"),
        ("A2A_MODEL_ENDPOINT_URL", service.as_str()),
        ("A2A_MODEL_KEY", "sk-canary-of-the-model"),
    ];
    let arguments = ["--port", "0", "--agent", "models", "--data", "data"];
    let agent = Running::start(&folder, &arguments, &settings, "listening on ").await;
    let reader = Reader::of(&agent);
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "How many A-1?"}],
        "metadata": {"a2a-lambda/skillId": "chat"},
    });
    let call = Call::say(agent.base(), "").body(&json!({"message": message}));
    let call = call.header("X-Canary", "canary-of-a-header");
    let call = call.header("Authorization", "Bearer dev:acme:canary-of-a-caller");
    let (status, text) = call.send().await;
    assert_eq!(status, 200, "{text}");
    // The page shows the tasks of its caller alone.
    let answer: Value = serde_json::from_str(&text).unwrap();
    let url = format!("{}/a2a-local/page/tasks/{}", agent.base(), id_of(&answer));
    let own = Call::get(&url).header("X-A2A-Local-Token", &reader.token);
    assert_eq!(own.clone().send().await.0, 404);
    let own = own.header("Authorization", "Bearer dev:acme:canary-of-a-caller");
    let rows = own.clone().json().await["trace"]
        .as_array()
        .unwrap()
        .clone();
    assert!(has_ended(&rows), "{rows:?}");
    let models = of_kind(&rows, "model");
    assert!(models.iter().all(|row| row["name"] == "chat/model#1"));
    let (step, call) = (models[0], models[1]);
    assert_eq!(call["parent"], step["id"]);
    assert_eq!(call["model"], "stub");
    assert_eq!(
        (&call["inputTokens"], &call["outputTokens"]),
        (&json!(31), &json!(4))
    );
    assert!(call["firstMs"].is_u64() && call["end"].is_u64(), "{call}");
    assert!(call.get("content").is_none(), "{call}");
    let row = format!("{url}/trace/{}", call["id"].as_str().unwrap());
    let content = own
        .at_path(row.strip_prefix(agent.base()).unwrap())
        .json()
        .await;
    let (request, reply) = (&content["content"]["request"], &content["content"]["reply"]);
    assert_eq!(request["messages"][0], json!({"user": "How many A-1?"}));
    assert_eq!(reply["content"][0], json!({"text": "Seven pieces."}));
    assert_eq!(replayed(request, reply).await, "Seven pieces.");
    let traced = bytes_of_traces(&folder.path().join("data"));
    assert!(traced.contains("Seven pieces."));
    let keys = ["sk-canary", "canary-of-a-header", "canary-of-a-caller"];
    each_row(keys, |key| {
        assert!(!traced.contains(key), "{key} is in the trace")
    });
}

#[tokio::test]
async fn credentials_and_inputs_that_are_not_kept_are_in_no_trace() {
    let folder = Folder::new();
    let arguments = ["--data", "data", "--agent", "conformance"];
    let agent = Running::agent(&folder, &arguments).await;
    let reader = Reader::of(&agent);
    let asked = Call::say(agent.base(), "auth").json().await;
    let id = id_of(&asked);
    let answer = json!({
        "messageId": "m2", "taskId": id, "role": "ROLE_USER",
        "parts": [{"text": "canary-of-the-credentials"}],
    });
    let answer = json!({"message": answer});
    Call::say(agent.base(), "").body(&answer).json().await;
    let is_answered = |rows: &[Value]| of_kind(rows, "turn").iter().any(|row| row["turn"] == 2);
    reader.rows(id, is_answered).await;
    let traced = bytes_of_traces(&folder.path().join("data"));
    assert!(traced.contains("\"kind\":\"turn\""), "{traced}");
    assert!(!traced.contains("canary"), "{traced}");
}

#[tokio::test]
async fn the_state_of_a_skill_that_keeps_no_input_has_names_without_values() {
    let session = async |settings: &[(&str, &str)]| {
        let arguments = ["--port", "0", "--memory", "--agent", "conformance"];
        let agent = Running::start(&Folder::new(), &arguments, settings, "listening on ").await;
        let noted = Call::say(agent.base(), "note canary").json().await;
        let path = format!("tasks/{}/state", id_of(&noted));
        Reader::of(&agent).get(&path).await["session"].clone()
    };
    let values = session(&[]).await;
    assert_eq!(values[0]["value"], "canary", "{values}");
    let hidden = session(&[("FORGETS_OF_TEST", "on")]).await;
    assert_eq!(hidden[0]["name"], "noted", "{hidden}");
    assert_eq!(hidden[0]["isHidden"], true, "{hidden}");
    assert!(hidden[0].get("value").is_none(), "{hidden}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_traces_and_a_deleted_task_has_none() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let arguments = ["--data", "data", "--agent", "conformance"];
    let agent = Running::agent(&folder, &arguments).await;
    let made = Call::say(agent.base(), "steps 2 10").json().await;
    Reader::of(&agent).rows(id_of(&made), has_ended).await;
    let traces = folder.path().join("data").join("traces");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&traces), 0o700);
    let files = || {
        std::fs::read_dir(&traces)
            .unwrap()
            .map(|it| it.unwrap().path())
    };
    assert_eq!(files().map(|file| mode(&file)).collect::<Vec<_>>(), [0o600]);
    let url = format!("{}/a2a-lambda/tasks/{}", agent.base(), id_of(&made));
    let delete = Call::get(&url).method(http::Method::DELETE);
    assert!(delete.send().await.0.is_success());
    for _ in 0..200 {
        if files().next().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the trace is left");
}

#[tokio::test]
async fn a_trace_survives_a_kill_and_shows_what_was_lost_and_what_was_kept() {
    let folder = Folder::new();
    let arguments = ["--data", "data", "--agent", "conformance"];
    let first = Running::agent(&folder, &arguments).await;
    let send = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "steps 4 600"}]},
        "configuration": {"returnImmediately": true},
    });
    let made = Call::say(first.base(), "").body(&send).json().await;
    let id = id_of(&made);
    let reader = Reader::of(&first);
    let in_second = |rows: &[Value]| {
        let steps = of_kind(rows, "step");
        steps.len() == 2 && steps.iter().filter(|row| row.get("end").is_none()).count() == 1
    };
    reader.rows(id, in_second).await;
    first.kill().await;
    let second = Running::agent(&folder, &arguments).await;
    let rows = Reader::of(&second).rows(id, has_ended).await;
    let turns = of_kind(&rows, "turn");
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert_eq!(
        (&turns[0]["lost"], &turns[0]["attempt"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(turns[1]["attempt"], 2);
    let steps = of_kind(&rows, "step");
    let lost = steps.iter().filter(|step| step["lost"] == true).count();
    let kept: Vec<_> = steps.iter().filter(|step| step["kept"] == true).collect();
    assert_eq!((steps.len(), lost, kept.len()), (6, 1, 1), "{steps:?}");
    assert_eq!(kept[0]["parent"], turns[1]["id"]);
    let versions: Vec<_> = of_kind(&rows, "write")
        .iter()
        .map(|row| row["version"].as_u64().unwrap())
        .collect();
    assert!(versions.is_sorted() && versions.len() >= 6, "{versions:?}");
}

#[tokio::test]
async fn rows_are_printed_as_they_end() {
    let folder = Folder::new();
    let arguments = ["--memory", "--agent", "conformance", "--trace"];
    let mut agent = Running::agent(&folder, &arguments).await;
    Call::say(agent.base(), "steps 1 10").json().await;
    let step = agent.next_line("trace ", "step ").await;
    assert!(step.contains("ms"), "{step}");
    agent.next_line("trace ", "turn ").await;
}

#[tokio::test]
async fn each_delivery_to_a_webhook_is_in_the_trace_with_its_error() {
    let folder = Folder::new();
    let agent = Running::agent(&folder, &["--data", "data", "--agent", "conformance"]).await;
    // Nothing listens there.
    let hook = json!({"url": "http://127.0.0.1:9/hook", "token": "canary-of-a-webhook"});
    let body = json!({
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "wait 0"}]},
        "configuration": {"taskPushNotificationConfig": hook},
    });
    let made = Call::say(agent.base(), "").body(&body).json().await;
    let has_delivery = |rows: &[Value]| !of_kind(rows, "delivery").is_empty();
    let rows = Reader::of(&agent).rows(id_of(&made), has_delivery).await;
    let row = of_kind(&rows, "delivery")[0];
    assert!(row["name"].as_str().unwrap().starts_with("event "), "{row}");
    assert!(row["error"].is_string() && row["end"].is_u64(), "{row}");
    assert!(!bytes_of_traces(&folder.path().join("data")).contains("canary"));
}

/// A recorder that keeps all.
#[derive(Debug, Default)]
struct Rows(Mutex<Vec<TraceRow>>);

impl RecordTrace for Rows {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn record(&self, _: &TaskKey, _: &WriteId, row: TraceRow) {
        self.0.lock().unwrap().push(row);
    }

    fn forget(&self, _: &TaskKey, _: &WriteId) {}
}

struct Development;

impl Source for Development {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

async fn counted(cx: &mut TaskContext<'_>, text: &str) -> AgentResult<String> {
    let length = cx.step_of("count", &text, async { Ok(text.to_owned()) });
    length.await?;
    let double = LlmTool::new("double", "Doubles.", |n: i64| async move {
        let twice = n.checked_mul(2);
        twice.ok_or_else(|| AgentError::domain("TOO_MUCH", "the number is too large"))
    });
    LlmWorker::<String>::new("Answer.")
        .tool(double)
        .run(cx, text)
        .await
}

/// Keeps what it gets.
#[skill(id = "open", tags = ["test"])]
async fn open(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    counted(cx, &text).await
}

/// Keeps nothing.
#[skill(id = "diary", tags = ["test"], keeps_input = false)]
async fn diary(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    counted(cx, &text).await
}

/// Asks the model without a worker: for a whole answer, and for pieces.
#[skill(id = "direct", tags = ["test"])]
async fn direct(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let messages = vec![ModelMessage::from_text(text)];
    let request = ModelRequest {
        messages,
        ..ModelRequest::default()
    };
    let whole = cx.model()?.converse(request.clone()).await?;
    let pieces = cx.model()?.converse_stream(request).await?;
    Ok(format!("{:?}, {}", whole.content, pieces.count().await))
}

/// Fails with a cause that quotes a name.
#[skill(id = "broken", tags = ["test"])]
async fn broken(_: String) -> AgentResult<String> {
    Err(AgentError::internal("there is no `plan#1`"))
}

/// The rows of one call of `skill`.
async fn rows_of(skill: &str, model: ScriptedModel) -> Vec<TraceRow> {
    let agent = Agent::builder("four")
        .description("Has four skills.")
        .version("1");
    let agent = agent.skill(open).skill(diary).skill(direct).skill(broken);
    let agent = agent.build().unwrap();
    let rows = Arc::new(Rows::default());
    let settings = Settings::read(&Development).unwrap();
    let runtime = Runtime::builder(agent, settings).model(model);
    let runtime = runtime.recorder(rows.clone()).build().unwrap();
    let message = json!({
        "messageId": "m", "role": "ROLE_USER", "parts": [{"text": "canary of ann"}],
        "metadata": {"a2a-lambda/skillId": skill},
    });
    let request = Request::post("/message:send").header("A2A-Version", "1.0");
    let request = request.header("Content-Type", "application/json");
    let body = Bytes::from(json!({"message": message}).to_string());
    let edge = runtime.edge(Function::TasksSend);
    let identity = Identity::of(&HeaderMap::new());
    let response = edge
        .handle(request.body(body).unwrap(), identity, None)
        .await;
    assert_eq!(response.status(), 200);
    std::mem::take(&mut *rows.0.lock().unwrap())
}

#[tokio::test]
async fn a_model_that_a_skill_calls_itself_is_in_the_trace() {
    let model = ScriptedModel::new().text("whole").text("in pieces");
    let rows = rows_of("direct", model).await;
    let calls = rows.iter().filter(|row| row.kind == "model");
    let replies = calls.filter_map(|row| row.content.get("reply").map(|reply| (row, reply)));
    let replies: Vec<_> = replies.collect();
    let texts: Vec<_> = replies
        .iter()
        .map(|(_, it)| &it["content"][0]["text"])
        .collect();
    assert_eq!(texts, ["whole", "in pieces"]);
    assert!(replies[1].0.facts.contains_key("firstMs"), "{rows:?}");
}

#[tokio::test]
async fn the_cause_of_a_failure_is_in_the_trace_with_the_names_that_it_quotes() {
    let rows = rows_of("broken", ScriptedModel::new()).await;
    let failure = rows.iter().find(|row| row.kind == "failure").unwrap();
    assert_eq!(failure.content["cause"], "there is no `plan#1`");
}

#[tokio::test]
async fn the_steps_of_a_worker_carry_the_name_of_the_skill() {
    let model = ScriptedModel::new().tool_call("double", json!({"value": 21}));
    let rows = rows_of("open", model.text("42")).await;
    let of = |kind: &str| rows.iter().find(|row| row.kind == kind).unwrap();
    assert_eq!(of("model").name, "open/model#1");
    assert_eq!(of("tool").name, "open/call/1.1#1>double#1");
}

#[tokio::test]
async fn a_tool_whose_error_the_model_gets_is_marked() {
    let model = ScriptedModel::new().tool_call("double", json!({"value": i64::MAX}));
    let rows = rows_of("open", model.text("too much")).await;
    let tool = rows.iter().rfind(|row| row.kind == "tool").unwrap();
    assert_eq!(tool.facts["error"], "TOO_MUCH", "{tool:?}");
}

#[tokio::test]
async fn a_skill_that_keeps_no_input_has_rows_without_content() {
    let model = || {
        let model = ScriptedModel::new().tool_call("double", json!({"value": 21}));
        model.text("canary of the model")
    };
    let kept = rows_of("open", model()).await;
    let with_content = |rows: &[TraceRow]| {
        let rows = rows.iter().filter(|row| !row.content.is_empty());
        let mut kinds: Vec<_> = rows.map(|row| row.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    assert_eq!(with_content(&kept), ["model", "step", "tool"]);
    let bare = rows_of("diary", model()).await;
    assert_eq!(with_content(&bare), [""; 0]);
    // It has the same rows.
    let kinds = |rows: &[TraceRow]| rows.iter().map(|row| row.kind).collect::<Vec<_>>();
    assert_eq!(kinds(&bare), kinds(&kept));
    let text = serde_json::to_string(&bare).unwrap();
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn no_function_has_a_recorder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders = vec![
        root.join("functions"),
        root.join("shared/runtime/src/serve"),
    ];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("recorder("), "{}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 11, "{count}");
}
