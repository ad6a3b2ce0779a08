//! `SendMessage` and the send methods of the older generations.

use a2a_lambda::auth::Identity;
use a2a_lambda::http::Function;
use a2a_lambda::prelude::*;
use a2a_lambda::runtime::Runtime;
use a2a_lambda::settings::{Settings, Source};
use a2a_lambda::store::StoreError;
use a2a_lambda::store::keys::Key;
use a2a_lambda::store::memory::MemoryTable;
use a2a_lambda::store::table::{Item, Query, QueryPage, ReadTable, Table, Write, WriteResult};
use a2a_lambda::task::TaskState;
use a2a_lambda_rows::each_row;
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{BUSY, Fault, UNAVAILABLE};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::tester::SKILL_CANARY;
use a2a_lambda_tests::watched_store::STORE_CANARY;
use a2a_lambda_tests::world::{Reply, Request, World};
use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use std::backtrace::Backtrace;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

per_dialect! {
    paused ALL:
    a_failed_task_has_an_error_code_and_no_private_text
    a_short_send_returns_the_completed_task
    a_response_has_the_shape_of_its_generation
    a_short_send_is_one_write
    a_message_with_a_task_id_continues_the_waiting_task
    a_skill_that_only_replies_makes_no_task
    a_state_unknown_to_0_1_becomes_the_nearest_state
    credentials_stay_out_of_the_history
    nothing_is_shown_while_the_store_refuses_writes
    a_refused_send_can_be_repeated
    exactly_one_of_two_parallel_answers_wins
    the_largest_body_and_the_deepest_json_are_accepted
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_slow_send_is_stored_while_its_skill_runs
}

per_dialect! {
    paused [Rpc01, Path01]:
    a_0_1_client_may_give_the_same_answer_twice
    a_0_1_retry_returns_the_task_and_runs_nothing
}

async fn a_short_send_returns_the_completed_task(dialect: Dialect) {
    // A2A 1.0 §3.2.2: a blocking send waits until its task is terminal or interrupted.
    let world = World::new().unwrap();
    let reply = world.call(&dialect.send(&Say::to("echo", "hi"))).await;
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
    assert_eq!(dialect.words(&task["artifacts"][0]), "echo: hi");
    // The request names no type.
    assert_eq!(
        reply.header("content-type"),
        "application/json",
        "{dialect:?}"
    );
    if dialect.is_rpc() {
        assert_eq!(reply.json()["id"], 7);
    }
}

async fn a_response_has_the_shape_of_its_generation(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.send(&Say::to("echo", "hi"))).await;
    let result = dialect.result(&reply);
    let names = |value: &Value| -> String {
        let members = value.as_object().unwrap();
        members
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let wrapped = matches!(dialect, Dialect::Rpc10 | Dialect::Rest10 | Dialect::Rest03);
    assert_eq!(names(&result) == "task", wrapped, "{dialect:?} {result}");
    let members = match dialect {
        Dialect::Rpc10 | Dialect::Rest10 => "artifacts contextId history id status",
        Dialect::Rest03 => "artifacts contextId history id metadata status",
        Dialect::Rpc03 => "artifacts contextId history id kind metadata status",
        Dialect::Rpc01 | Dialect::Path01 => "artifacts id metadata sessionId status",
    };
    let task = dialect.task(&reply);
    assert_eq!(names(&task), members, "{dialect:?}");
    let time = task["status"]["timestamp"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
    // Absent members are left out; none of them is null.
    assert!(!reply.text().contains("null"), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn an_envelope_on_a_0_1_path_gets_an_envelope_back() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rpc01;
    let mut writes = Vec::new();
    let mut request = dialect.send(&Say::to("echo", "hi"));
    for path in ["/tasks/send", "/"] {
        path.clone_into(&mut request.target);
        let reply = world.call(&request).await;
        assert_eq!(reply.json()["id"], 7, "{}", reply.text());
        assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
        writes.push(world.store.writes());
    }
    assert_eq!(writes[0], writes[1], "the second call is a retry");
}

async fn a_short_send_is_one_write(dialect: Dialect) {
    let world = World::new().unwrap();
    world.call(&dialect.send(&Say::to("echo", "hi"))).await;
    let versions: Vec<u64> = world.store.commits().iter().map(|c| c.version).collect();
    // 0.1 clients make the id, so it is stored before the skill runs.
    let expected: &[u64] = if dialect.is_v01() { &[1, 2] } else { &[1] };
    assert_eq!(versions, expected, "{dialect:?}");
}

async fn a_slow_send_is_stored_while_its_skill_runs(dialect: Dialect) {
    let world = World::new().unwrap();
    let request = dialect.send(&Say::to("slow", "now"));
    let opener = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let commits = world.store.commits();
        assert_eq!(commits.len(), 1, "{dialect:?}");
        assert_eq!(commits[0].state, TaskState::Working);
        world.gate.open();
    };
    let (reply, ()) = tokio::join!(world.call(&request), opener);
    assert_eq!(dialect.state(&dialect.task(&reply)), "completed");
    assert_eq!(world.store.commits().len(), 2);
}

async fn a_message_with_a_task_id_continues_the_waiting_task(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.send(&Say::to("ask", "hi"))).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "input-required", "{dialect:?}");
    assert_eq!(dialect.status_words(&task), "which one?");
    let id = task["id"].as_str().unwrap();
    let context = dialect.context(&task);

    let reply = world.call(&dialect.send(&Say::in_task(id, "again"))).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "input-required", "{}", reply.text());
    assert_eq!(dialect.status_words(&task), "which one now?");
    assert_eq!(
        (task["id"].as_str(), dialect.context(&task)),
        (Some(id), context.clone())
    );

    let say = Say::in_task(id, "blue").in_context(&context);
    let task = dialect.task(&world.call(&dialect.send(&say)).await);
    assert_eq!(dialect.state(&task), "completed");
    assert_eq!(dialect.words(&task["artifacts"][0]), "blue after 2");
}

async fn a_0_1_client_may_give_the_same_answer_twice(dialect: Dialect) {
    let world = World::new().unwrap();
    world.call(&dialect.send(&Say::to("ask", "again"))).await;
    let again = dialect.send(&Say::in_task("order:1", "again"));
    for _ in 0..2 {
        let task = dialect.task(&world.call(&again).await);
        assert_eq!(dialect.status_words(&task), "which one now?");
    }
}

async fn a_0_1_retry_returns_the_task_and_runs_nothing(dialect: Dialect) {
    let world = World::new().unwrap();
    let request = dialect.send(&Say::to("echo", "hi"));
    let first = world.call(&request).await;
    let writes = world.store.writes();
    let second = world.call(&request).await;
    assert_eq!(first.text(), second.text());
    assert_eq!(world.store.writes(), writes);
}

async fn a_skill_that_only_replies_makes_no_task(dialect: Dialect) {
    let world = World::new().unwrap();
    let reply = world.call(&dialect.send(&Say::to("greet", "hi"))).await;
    let result = dialect.result(&reply);
    let said = if dialect.is_v01() {
        assert_eq!(dialect.state(&result), "completed");
        dialect.status_words(&result)
    } else {
        let message = result.get("message").unwrap_or(&result);
        assert!(message.get("taskId").is_none(), "{message}");
        dialect.words(message)
    };
    assert_eq!(said, "hello there", "{dialect:?} {}", reply.text());
    if !dialect.is_v01() {
        assert_eq!(world.store.writes(), 0);
    }
}

async fn a_failed_task_has_an_error_code_and_no_private_text(dialect: Dialect) {
    let skills = [
        ("broken", "INTERNAL_ERROR", "internal error", json!({})),
        (
            "refused",
            "OUT_OF_STOCK",
            "nothing left",
            json!({"left": 0}),
        ),
        ("panics", "INTERNAL_ERROR", "internal error", json!({})),
    ];
    for (skill, code, text, details) in &skills {
        let world = World::new().unwrap();
        let sent = world.call(&dialect.send(&Say::to(skill, "hi"))).await;
        let task = dialect.task(&sent);
        let id = task["id"].as_str().unwrap();
        let read = world.call(&dialect.of_task(Op::Get, id)).await;
        let streamed = dialect.stream(&Say::to(skill, "hi").under("order:2"));
        let streamed = world.call(&streamed).await;
        each_row([&sent, &read, &streamed], |reply| {
            assert!(!reply.text().contains(SKILL_CANARY), "{}", reply.text());
        });
        assert!(streamed.text().contains(code), "{}", streamed.text());
        for task in [task.clone(), dialect.task(&read)] {
            assert_eq!(dialect.state(&task), "failed", "{dialect:?} {skill}");
            assert_eq!(dialect.status_words(&task), *text);
            let metadata = at(&task, "/status/message/metadata");
            assert_eq!(metadata["a2a-lambda/errorCode"], *code);
            assert_eq!(metadata["a2a-lambda/errorDetails"], *details);
        }
    }
}

async fn a_state_unknown_to_0_1_becomes_the_nearest_state(dialect: Dialect) {
    for (skill, state, state_01, words) in [
        ("declines", "rejected", "failed", "not today"),
        ("login", "auth-required", "input-required", "sign in first"),
    ] {
        let world = World::new().unwrap();
        let task = dialect.task(&world.call(&dialect.send(&Say::to(skill, "hi"))).await);
        // 0.1 has neither `rejected` nor `auth-required`.
        let state = if dialect.is_v01() { state_01 } else { state };
        assert_eq!(dialect.state(&task), state, "{dialect:?}");
        assert_eq!(dialect.status_words(&task), words);
    }
}

async fn credentials_stay_out_of_the_history(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = dialect.task(&world.call(&dialect.send(&Say::to("login", "hi"))).await);
    let id = task["id"].as_str().unwrap();
    let secret = Say::in_task(id, "hunter2-secret");
    let done = world.call(&dialect.send(&secret)).await;
    assert_eq!(dialect.state(&dialect.task(&done)), "completed");
    let read = world.call(&dialect.get(id, 100)).await;
    for reply in [done, read] {
        assert!(!reply.text().contains("hunter2"), "{}", reply.text());
    }
}

async fn nothing_is_shown_while_the_store_refuses_writes(dialect: Dialect) {
    for skill in ["echo", "ask", "chunks"] {
        let world = World::new().unwrap();
        world.store.refuse_commits(true);
        let say = Say::to(skill, "hi");
        for request in [dialect.send(&say), dialect.stream(&say)] {
            let reply = world.call(&request).await;
            Fault::new(dialect, UNAVAILABLE).check(&reply).unwrap();
            assert!(!reply.text().contains(STORE_CANARY));
            assert!(!reply.header("retry-after").is_empty());
        }
    }
}

async fn a_refused_send_can_be_repeated(dialect: Dialect) {
    let world = World::new().unwrap();
    world.store.refuse_commits(true);
    let request = dialect.send(&Say::to("echo", "hi"));
    world.call(&request).await;
    world.store.refuse_commits(false);
    let task = dialect.task(&world.call(&request).await);
    assert_eq!(dialect.state(&task), "completed", "{dialect:?}");
}

async fn exactly_one_of_two_parallel_answers_wins(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = dialect.task(&world.call(&dialect.send(&Say::to("ask", "hi"))).await);
    let id = task["id"].as_str().unwrap();
    // Both turns read the task before either of them can be stored.
    world.store.hold();
    let (one, two) = (Say::in_task(id, "red"), Say::in_task(id, "blue"));
    let (one, two) = (dialect.send(&one), dialect.send(&two));
    let open = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        world.store.release();
    };
    let (one, two, ()) = tokio::join!(world.call(&one), world.call(&two), open);
    let won = |reply: &Reply| dialect.state(&dialect.task(reply)) == "completed";
    let (winner, loser) = match (won(&one), won(&two)) {
        (true, false) => (one, two),
        (false, true) => (two, one),
        both => panic!("{dialect:?}: {both:?}"),
    };
    Fault::new(dialect, BUSY).check(&loser).unwrap();
    let read = dialect.task(&world.call(&dialect.of_task(Op::Get, id)).await);
    assert_eq!(read["artifacts"], dialect.task(&winner)["artifacts"]);
}

async fn the_largest_body_and_the_deepest_json_are_accepted(dialect: Dialect) {
    let world = World::new().unwrap();
    let mut request = dialect.send(&Say::to("greet", "hi"));
    let fill = 5 * 1024 * 1024 - request.body.len();
    request.body.extend(vec![b' '; fill]);
    let reply = world.call(&request).await;
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    // In an envelope, `params` and the envelope itself add two levels.
    let levels = if dialect.is_rpc() { 29 } else { 30 };
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let mut params = dialect.say(&Say::to("greet", "hi").under("order:2"));
    params["metadata"] = json!({"x": serde_json::from_str::<Value>(&deep).unwrap()});
    let reply = world.call(&dialect.request(Op::Send, "", &params)).await;
    assert_eq!(reply.status, 200, "{dialect:?} {}", reply.text());
    assert!(reply.json().get("error").is_none(), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn the_base_url_works_with_and_without_its_slash() {
    let world = World::new().unwrap();
    let mut request = Dialect::Rpc10.send(&Say::to("echo", "hi"));
    // The 1.0 kit uses both forms of the base URL.
    for target in ["/", "https://agent.example"] {
        target.clone_into(&mut request.target);
        assert_eq!(world.call(&request).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rest_response_has_the_media_type_that_the_client_names() {
    let world = World::new().unwrap();
    let special = "application/a2a+json";
    for dialect in [Dialect::Rest10, Dialect::Rest03] {
        let good = dialect.send(&Say::to("echo", "hi"));
        for request in [
            good.clone().header("content-type", special),
            good.header("accept", special),
            Request::new("GET", "/nowhere").header("accept", special),
        ] {
            let reply = world.call(&request).await;
            assert_eq!(reply.header("content-type"), special, "{}", reply.text());
        }
    }
}

struct Development;

impl Source for Development {
    fn get(&self, name: &str) -> Option<String> {
        (name == "A2A_AUTH").then(|| "dev".to_owned())
    }
}

/// A table that notes the stack of its first write.
#[derive(Debug, Default)]
struct StackTable {
    table: MemoryTable,
    stack: OnceLock<String>,
}

#[async_trait]
impl ReadTable for StackTable {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.table.get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.table.query(query).await
    }
}

#[async_trait]
impl Table for StackTable {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        let stack = || Backtrace::force_capture().to_string();
        let _first = self.stack.get_or_init(stack);
        self.table.write(write).await
    }
}

/// Says a text twice.
#[skill(id = "twice", tags = ["test"])]
async fn twice(text: String) -> AgentResult<String> {
    Ok(format!("{text} {text}"))
}

#[tokio::test]
async fn a_send_passes_ten_functions_from_the_edge_to_the_table() {
    let table = Arc::new(StackTable::default());
    let settings = Settings::read(&Development).unwrap();
    let agent = Agent::builder("test").skill(twice).build().unwrap();
    let runtime = Runtime::builder(agent, settings);
    let runtime = runtime.table(table.clone()).build().unwrap();
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    let request = http::Request::post("/message:send").header("A2A-Version", "1.0");
    let request = request.header("Content-Type", "application/json");
    let body = Bytes::from(json!({"message": message}).to_string());
    let edge = runtime.edge(Function::TasksSend);
    let identity = Identity::of(&http::HeaderMap::new());
    let response = edge
        .handle(request.body(body).unwrap(), identity, None)
        .await;
    assert_eq!(response.status(), 200);
    // With `write` and `write_one` of the table on DynamoDB they are those of docs/flow.md.
    let expected = [
        ("commit", "store/src/records/commit.rs"),
        ("write", "runtime/src/engine/commit/mod.rs"),
        ("finish_turn", "runtime/src/engine/turn/finish.rs"),
        ("execute", "runtime/src/engine/turn/run.rs"),
        ("run_accepted", "runtime/src/engine/turn/run.rs"),
        ("send", "runtime/src/engine/handler/send_message.rs"),
        ("unary", "runtime/src/http/backend.rs"),
        ("unary", "runtime/src/http/call_context.rs"),
        ("one", "runtime/src/http/call_context.rs"),
        ("respond", "runtime/src/http/mod.rs"),
    ];
    let stack = table.stack.get().unwrap();
    // A build with line tables shows files, and another one the names of functions.
    match stack.contains("shared/runtime/") {
        true => assert_eq!(files_of(stack), expected.map(|(_, file)| file)),
        false => assert_eq!(functions_of(stack), expected.map(|(name, _)| name)),
    }
}

/// The files of our functions, the innermost first.
fn files_of(stack: &str) -> Vec<&str> {
    let places = stack
        .lines()
        .filter_map(|line| line.trim().strip_prefix("at "));
    let ours = places.filter_map(|place| place.split_once("shared/")?.1.split(':').next());
    ours.collect()
}

/// The names of our functions, the innermost first.
fn functions_of(stack: &str) -> Vec<&str> {
    let symbols = stack
        .lines()
        .filter_map(|line| Some(line.split_once(": ")?.1));
    let symbols = symbols.filter_map(|symbol| symbol.split("::{{").next());
    let symbols = symbols.map(|symbol| symbol.trim_start_matches('<'));
    let mut ours: Vec<&str> = symbols.filter(|it| it.starts_with("a2a_lambda")).collect();
    ours.dedup();
    let names = ours.iter().filter_map(|symbol| symbol.rsplit("::").next());
    names.collect()
}
