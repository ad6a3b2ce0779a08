//! Compares what each operation costs with the table in `docs/costs.md`.

use crate::counter::{Counter, message, owner};
use a2a_lambda::auth::Identity;
use a2a_lambda::engine::{
    CallRate, Clock as _, LimitPolicy, Policy, PushDelivery, PushDeliveryError, PushDispatcher,
    PushServices, RandomIds, SendPush, SweepPlaces, SystemClock, relay_pushes,
};
use a2a_lambda::prelude::*;
use a2a_lambda::store::Blobs as _;
use a2a_lambda::store::brake::{BrakeTarget, Brakes};
use a2a_lambda::store::contract::noise;
use a2a_lambda::store::limits::{Limits, Reservation};
use a2a_lambda::store::queue::{PushItem, TaskImage, WorkItem};
use a2a_lambda::task::{TaskId, TenantId, TokenUse, WriteId};
use a2a_lambda_tests::log_lines::LogLines;
use a2a_local::queue::LocalQueue;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PAPER: &str = include_str!("../../docs/costs.md");
const HEADER: &str = "| Operation | Requests | Write units | Read units |\n|---|---|---|---|\n";

/// SHA-256 of `0123456789` repeated 10,000 times.
const DIGITS: &str = "aca9e593cc629cbaa94cd5a07dc029424aad93e5129e5d11f8dcd2f139c16cc0";
/// SHA-256 of `0123456789` repeated 5,000,000 times.
const MANY_DIGITS: &str = "07d7c2d2ff2345a78a4cb8f17a80869b71ee4efaa7b5051ddf027d0a88ead060";

const HOUR: Duration = Duration::from_secs(3600);

/// Answers a question of one sentence with a sentence and a text.
#[skill(id = "order-status", tags = ["test"])]
async fn order_status(_: Content) -> AgentResult<OnRequestResult<String>> {
    Ok(OnRequestResult::Completed {
        message: Some("I have found the order you asked for, and it is on its way.".into()),
        output: "Three parcels left Rotterdam on Friday and will come on Monday morning."
            .to_owned(),
        artifacts: Vec::new(),
    })
}

/// Asks two services; the first one may be down.
#[skill(id = "two-services", tags = ["test"])]
async fn two_services(cx: &mut TaskContext<'_>, text: String) -> AgentResult<String> {
    let first = async {
        match text.as_str() {
            "up" => Ok("first".to_owned()),
            _ => Err(AgentError::domain("DOWN", "the first service is down")),
        }
    };
    let first = cx.step("first", first).await;
    let second = cx.step("second", async { Ok("second".to_owned()) }).await?;
    Ok(first.unwrap_or(second))
}

/// What the failure of a step adds.
async fn failures(counter: &mut Counter) {
    let agent = Agent::builder("test").skill(two_services).build().unwrap();
    let mut services = Counter::new(agent).await;
    services.warm().await;
    services.send("up").await;
    services.row("a send whose skill does two steps");
    services.send("down").await;
    services.row("the same, if the first step fails and the skill continues");
    counter.rows.push_str(&services.rows);
}

/// What a message costs that neither its words nor its parts decide.
async fn undecided(counter: &mut Counter) {
    let agent = Agent::builder("test").skill(two_services);
    let agent = agent.skill(order_status).build().unwrap();
    let mut services = Counter::new(agent).await;
    services.warm().await;
    let asked = services.send("I have a wish").await;
    services.row("a send that ends with the question which skill is meant");
    let mut more = message("/order-status now");
    more["message"]["contextId"] = asked["contextId"].clone();
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let sent = services.post("/message:send", &more).await;
        tasks.push(sent["task"]["id"].clone());
    }
    services.meter.take();
    more["message"]["parts"][0]["text"] = json!("I have another wish");
    services.post("/message:send", &more).await;
    services.row("another one in its context, which now has four tasks");
    more["message"]["messageId"] = json!("m2");
    more["message"]["referenceTaskIds"] = json!(tasks);
    services.post("/message:send", &more).await;
    services.row("the same with references to three of them");
    counter.rows.push_str(&services.rows);
}

async fn sends(counter: &mut Counter) {
    counter.warm().await;
    counter.send("echo hello").await;
    let bill = counter.row("a short blocking send, its answer included");
    assert_eq!(
        bill.requests.values().sum::<usize>(),
        1,
        "one conditional write"
    );

    let mut own = message("echo hello");
    own["message"]["contextId"] = json!("my-conversation");
    counter.post("/message:send", &own).await;
    counter.row("the same under a new context id of the client");

    let key = [("Idempotency-Key", "key-1")];
    counter
        .call("/message:send", Some(&message("echo hello")), &key)
        .await;
    counter.row("the same with an idempotency key");
    counter
        .call("/message:send", Some(&message("echo hello")), &key)
        .await;
    counter.row("the same once more, with the same key");

    let mut reported = message("hello");
    reported["message"]["messageId"] = json!("tck-message-response");
    counter.post("/message:send", &reported).await;
    counter.row("a send whose skill answers without a task");
    let key = [("Idempotency-Key", "key-2")];
    let said = counter.call("/message:send", Some(&reported), &key).await;
    counter.row("the same with an idempotency key");
    let again = counter.call("/message:send", Some(&reported), &key).await;
    assert_eq!(said, again);
    counter.row("the same once more, with the same key");

    let asked = counter.send("?").await;
    counter.row("a send that ends with a question");
    let mut answer = message("echo hi");
    answer["message"]["taskId"] = asked["id"].clone();
    counter.post("/message:send", &answer).await;
    counter.row("the answer to it");

    counter.send("steps 1").await;
    counter.row(
        "a send whose skill does one step, keeps a value for the task and one for the context",
    );

    let mut queued = message("echo hello");
    queued["configuration"] = json!({"returnImmediately": true});
    let task = counter.post("/message:send", &queued).await["task"].clone();
    counter.rests(&task).await;
    counter.row("a send that does not wait, and its worker");

    let mut refers = message("echo hello");
    refers["message"]["referenceTaskIds"] = json!([task["id"], asked["id"]]);
    counter.post("/message:send", &refers).await;
    let bill = counter.row("a send that refers to two tasks, whose skill does not read them");
    assert_eq!(
        bill.requests.values().sum::<usize>(),
        1,
        "unused references are not read"
    );
    refers["message"]["parts"][0]["text"] = json!("refer");
    counter.post("/message:send", &refers).await;
    counter.row("the same, whose skill reads them");
}

async fn reads(counter: &mut Counter) {
    counter.warm().await;
    let task = counter.send("echo hello").await;
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    counter.meter.take();
    counter.call(&path, None, &[]).await;
    counter.row("reading a task");
    counter.call("/tasks?pageSize=5", None, &[]).await;
    counter.row("a page of 5 tasks");
    let other = [("Authorization", "Bearer dev:acme:ann")];
    for _ in 0..5 {
        let echo = message("echo hello");
        counter.call("/message:send", Some(&echo), &other).await;
    }
    counter.meter.take();
    counter.call("/tasks?pageSize=5", None, &other).await;
    counter.row("the whole list of another caller with 5");

    let asked = counter.send("what?").await;
    let path = format!("/tasks/{}", asked["id"].as_str().unwrap());
    counter.meter.take();
    {
        let edge = counter.edge("GET", "/tasks/x:subscribe");
        let request = Request::builder()
            .uri(format!("{path}:subscribe"))
            .header("A2A-Version", "1.0");
        let identity = Identity {
            authorizer: None,
            authorization: None,
        };
        let request = request.body(Bytes::new()).unwrap();
        let mut stream = edge.handle(request, identity, None).await.into_body();
        stream.frame().await.unwrap().unwrap();
        // From here on every request is a poll.
        counter.meter.take();
        while counter.meter.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        counter.meter.settles().await;
        counter.row("one poll of a subscription");
    }
    let (owner, now) = (owner(), counter.clock.now());
    let id = TaskId::parse(asked["id"].as_str().unwrap()).unwrap();
    let tail = counter.near.tail(&owner, &id, 0, now).await.unwrap();
    assert!(!tail.unwrap().events.is_empty());
    counter.row("one that finds events of a small task");
    let configs = format!("{path}/pushNotificationConfigs");
    let hook = json!({"id": "hook-1", "url": "https://example.com/hook"});
    counter.post(&configs, &hook).await;
    counter.row("creating a push config for it");
    counter.call(&format!("{configs}/hook-1"), None, &[]).await;
    counter.row("reading the push config");
    let asked = counter.send("what?").await;
    let path = format!("/tasks/{}", asked["id"].as_str().unwrap());
    counter.meter.take();
    let cancel = counter.post(&format!("{path}:cancel"), &json!({})).await;
    assert_eq!(cancel["status"]["state"], "TASK_STATE_CANCELED");
    counter.row("canceling a task that waits for an answer");
}

async fn large(counter: &mut Counter) {
    counter.warm().await;
    counter.meter.take();
    counter
        .call("/message:stream", Some(&message("chunks 100")), &[])
        .await;
    let bill = counter.row("a stream of 100 chunks in a burst");
    let writes: usize = bill.requests.values().sum();
    assert!(writes <= 6, "{bill:?}");

    for _ in 0..5 {
        counter
            .call("/message:stream", Some(&message("chunks 1000")), &[])
            .await;
    }
    counter.meter.settles().await;
    counter.meter.take();
    let page = "/tasks?pageSize=5&historyLength=0";
    counter.call(page, None, &[]).await;
    counter.row("a page of 5 tasks of 1,000 chunks, without their artifacts");
    let page = format!("{page}&includeArtifacts=true");
    counter.call(&page, None, &[]).await;
    counter.row("the same with their artifacts");

    let task = counter.send("file 100000").await;
    counter.row("a send that makes a file of 100 KB, its answer included");
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    counter.call(&path, None, &[]).await;
    counter.row("reading it");
}

/// Stores memories of 32 KB as `memory_add` does, without its tasks.
#[skill(id = "remember", tags = ["test"])]
async fn remember(cx: &mut TaskContext<'_>, count: String) -> AgentResult<String> {
    let count: usize = count.parse().map_err(AgentError::serialization)?;
    let memories = cx.own_documents("memory/user")?;
    for number in 0..count {
        let memory = json!({"content": "tea ".repeat(8_192), "tags": [], "metadata": {},
            "importance": 0.5, "createdAt": number});
        memories
            .put(&format!("mem_{number:013}-0"), &memory)
            .await?;
    }
    Ok("stored".to_owned())
}

/// A search whose words no memory has.
async fn searches(counter: &mut Counter) {
    let agent = Agent::builder("test").skills(a2a_lambda_sets::memory::set());
    let agent = agent.skill(remember).build().unwrap();
    let mut memories = Counter::still(agent).await;
    memories.warm().await;
    // The first turn of a conversation searches for its own sake.
    let first = memories.send("/remember 0").await;
    let search = json!({"query": "absent", "layers": ["user"]});
    let mut search = message(&format!("/memory_search {search}"));
    search["message"]["contextId"] = first["contextId"].clone();
    memories.post("/message:send", &search).await;
    memories.clock.hold(true);
    for (count, row) in [
        (1, "a search of a scope with a memory of 32 KB"),
        (160, "the same with 160 of them"),
    ] {
        memories.send(&format!("/remember {count}")).await;
        memories.meter.take();
        let task = memories.post("/message:send", &search).await["task"].clone();
        let bill = memories.row(row);
        // 512 KB in eventually consistent reads of 4 KB, half a unit each, and what they round up.
        assert!(bill.half_reads <= 128 + 8, "{bill:?}");
        let answer = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!(answer["partial"], count > 1, "{task}");
    }
    counter.rows.push_str(&memories.rows);
}

async fn larger(counter: &mut Counter) {
    counter.warm().await;
    counter.clock.hold(true);
    let task = counter.send("file 50000000").await;
    counter.row("a send that makes a file of 50 MB, its answer included");
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    counter.call(&path, None, &[]).await;
    counter.row("reading it (the client gets the object by the URL)");
    let bytes = "0123456789".repeat(5_000_000);
    send_upload(counter, bytes, MANY_DIGITS).await;
    counter.row("a send that names an upload of 50 MB");
    let task = counter.send(&format!("? {}", noise(1, 100_000))).await;
    counter.row("a send of 100 KB of text that ends with a question, its answer included");
    let path = format!("/tasks/{}", task["id"].as_str().unwrap());
    counter
        .call(&format!("{path}?historyLength=0"), None, &[])
        .await;
    counter.row("reading it without its history");
    counter.call(&path, None, &[]).await;
    counter.row("the same with its history");
    counter.clock.hold(false);
}

async fn conversations(counter: &mut Counter) {
    counter.warm().await;
    let first = counter.send("echo hello").await;
    counter.meter.take();
    let mut more = message("echo hello again");
    more["message"]["contextId"] = first["contextId"].clone();
    counter.post("/message:send", &more).await;
    counter.row("the second task of a context");
    counter.post("/message:send", &more).await;
    counter.row("the third");
    more["message"]["parts"][0]["text"] = json!("recall");
    counter.post("/message:send", &more).await;
    counter.row("a task whose skill reads the three before it");
    let page = "/a2a-lambda/contexts?pageSize=5";
    counter.call(page, None, &[]).await;
    counter.row("a page of 5 contexts");
    let context = first["contextId"].as_str().unwrap();
    counter
        .call(&format!("/tasks?contextId={context}"), None, &[])
        .await;
    counter.row("the list of a context of four tasks");
    let alone = counter.send("echo hello").await;
    counter.meter.take();
    let path = format!("/a2a-lambda/tasks/{}", alone["id"].as_str().unwrap());
    counter.delete(&path).await;
    counter.row("deleting a task");
    counter
        .delete(&format!("/a2a-lambda/contexts/{context}"))
        .await;
    counter.row("deleting a context of four tasks");
}

async fn uploads(counter: &mut Counter) {
    counter.warm().await;
    let bytes = "0123456789".repeat(10_000);
    send_upload(counter, bytes, DIGITS).await;
    counter.row("the send that names it");
}

/// Orders an upload, puts the file without the meter, and sends a message that
/// refers to it.
async fn send_upload(counter: &mut Counter, bytes: String, sha256: &str) {
    let order = json!({"size": bytes.len(), "sha256": sha256, "filename": "digits.txt",
        "mediaType": "text/plain"});
    let grant = counter.post("/a2a-lambda/uploads", &order).await;
    if sha256 == DIGITS {
        counter.row("the order of an upload of 100 KB (the client puts the object)");
    }
    let urn = grant["part"]["url"].as_str().unwrap();
    let id = urn.split(':').nth(3).unwrap();
    let owner = owner();
    let key = format!("up/{}/{}/{id}", owner.tenant.folder(), owner.subject.hash());
    counter.blobs.put(&key, bytes.into()).await.unwrap();
    let mut named = message("echo hello");
    let parts = named["message"]["parts"].as_array_mut().unwrap();
    parts.push(grant["part"].clone());
    counter.post("/message:send", &named).await;
}

/// Costs that depend on the time that passed.
async fn later(counter: &mut Counter) {
    let first = counter.send("echo hello").await;
    let mut more = message("echo hello again");
    more["message"]["contextId"] = first["contextId"].clone();
    counter.post("/message:send", &more).await;
    counter.clock.advance(HOUR * 2);
    counter.meter.take();
    counter.post("/message:send", &more).await;
    counter.row("a task that continues a context after two idle hours");
}

/// Webhooks that accept every delivery, or refuse every one with 503.
struct Hooks(bool);

#[async_trait::async_trait]
impl SendPush for Hooks {
    async fn post(&self, _: &PushDelivery) -> Result<(), PushDeliveryError> {
        self.0.then_some(()).ok_or(PushDeliveryError::Status(503))
    }
}

/// The meter does not count calls of the queue and of the webhooks.
async fn deliveries(counter: &mut Counter) {
    let agent = conformance_agent::agent(Duration::from_secs(2)).unwrap();
    let mut still = Counter::still(agent).await;
    let queue = LocalQueue::<PushItem>::new(still.clock.clone(), Duration::from_secs(90));
    for takes in [true, false] {
        let mut body = message("echo hello");
        // Each with a host of its own, so that the first has taken no request of the second.
        let url = format!("https://{takes}.example.com/hook");
        let hook = json!({"id": "hook-1", "url": url});
        body["configuration"] = json!({"taskPushNotificationConfig": hook});
        let task = still.post("/message:send", &body).await["task"].clone();
        let id = TaskId::parse(task["id"].as_str().unwrap()).unwrap();
        let found = still.tasks.load(&owner(), &id, still.clock.now()).await;
        let image = TaskImage::of(&found.unwrap().unwrap());
        assert_eq!(image.notify, Some(3));
        assert_eq!(relay_pushes(&queue, &[image]).await, 0);
        let rung = queue.receive().await;
        let outgoing = PushServices {
            deliveries: still.near.deliveries(),
            queue: Arc::new(queue.clone()),
            webhooks: Arc::new(Hooks(takes)),
            clock: still.clock.clone(),
            ids: Arc::new(RandomIds),
        };
        let dispatcher = PushDispatcher::new(outgoing, Policy::default());
        still.meter.take();
        dispatcher.deliver(&rung.item, None).await;
        if takes {
            still.row("delivering the three events of a finished task to its webhook");
            dispatcher.deliver(&rung.item, None).await;
            still.row("a push queue message for a webhook that has them");
        } else {
            still.row("an attempt that fails");
        }
    }
    counter.rows.push_str(&still.rows);
}

async fn sweeps(counter: &mut Counter) {
    counter.meter.settles().await;
    counter.meter.take();
    let mut places = SweepPlaces::default();
    let queue = LocalQueue::<WorkItem>::new(Arc::new(SystemClock), HOUR);
    let engine = counter.runtime.engine();
    let swept = engine.sweeper.sweep_round(&queue, &mut places, None);
    let swept = Box::pin(swept).await;
    assert!(swept.error.is_none(), "{swept:?}");
    counter.row("a sweep that finds nothing to do");
}

/// The conformance agent with limits of its tenants, on the heap: the counter is large.
async fn limited(change: impl FnOnce(&mut LimitPolicy)) -> Box<Counter> {
    let agent = conformance_agent::agent(Duration::from_secs(2)).unwrap();
    let counter = Box::new(Box::pin(Counter::limited(agent, change)).await);
    // The list takes a lot of tokens under a rate limit, and spends one of them.
    counter.warm().await;
    counter
}

/// What each limit adds to an operation.
async fn limits(counter: &mut Counter) {
    for rows in [
        Box::pin(rated()).await,
        Box::pin(slots()).await,
        Box::pin(quota()).await,
    ] {
        counter.rows.push_str(&rows);
    }
    let set = Brakes::new(counter.tasks.table());
    let set = set.change(&BrakeTarget::Everything, true, SystemClock.now());
    set.await.unwrap();
    counter.meter.take();
    counter.meter.counts_brake.store(true, Ordering::Relaxed);
    Brakes::new(counter.near.table()).read().await.unwrap();
    counter.row("reading the brake, every 5 s at most in a process while it works");
    model_calls(counter).await;
}

async fn rated() -> String {
    let rate = CallRate::per_minute(1000);
    let mut counter = limited(|it| it.rates.calls = Some(rate)).await;
    for _ in 0..9 {
        counter.send("echo hello").await;
    }
    counter.row("nine short sends under a rate limit, with tokens that the process has");
    counter.send("echo hello").await;
    counter.row("the tenth, which takes a lot of 10 tokens (1/100 of the rate)");
    counter.rows
}

/// A turn of a second that answers at `path`, under these limits. The one before it makes
/// the item that holds the slots of the tenant, which costs a request more.
async fn second(path: &str, row: &str, change: impl FnOnce(&mut LimitPolicy)) -> String {
    let mut counter = limited(change).await;
    for _ in 0..2 {
        counter.meter.take();
        counter.call(path, Some(&message("wait 1")), &[]).await;
        counter.meter.settles().await;
    }
    counter.row(row);
    counter.rows
}

async fn slots() -> String {
    let (send, stream) = ("/message:send", "/message:stream");
    let streams = |it: &mut LimitPolicy| it.streams_per_tenant = Some(20);
    [
        Box::pin(second(send, "a turn of a second", |_| ())).await,
        Box::pin(second(stream, "a turn of a second as a stream", |_| ())).await,
        Box::pin(second(
            stream,
            "the same stream with a stream slot",
            streams,
        ))
        .await,
    ]
    .concat()
}

/// Two calls of models below four fifths of a day, after its first one, and one above.
async fn model_calls(counter: &mut Counter) {
    let limits = Limits::new(counter.near.table());
    let now = SystemClock.now();
    for (number, tokens) in [(1, 10_000), (2, 10_000), (3, 800_000)] {
        let call = Reservation {
            tenant: TenantId::parse("local").unwrap(),
            day: now.day(),
            id: WriteId::made_of(number),
            tokens,
        };
        let used = TokenUse {
            calls: 1,
            input: tokens,
            ..TokenUse::default()
        };
        limits.reserve_tokens(&call, 1_000_000, now).await.unwrap();
        limits.settle_tokens(&call, "m", used).await.unwrap();
        match number {
            2 => counter.row("a call of a model, beside the commit that keeps its answer"),
            3 => counter.row("the same above four fifths of the tokens of a day"),
            _ => counter.meter.take(),
        };
    }
}

async fn quota() -> String {
    let mut counter = limited(|it| it.stored_bytes_per_day = Some(1_000_000)).await;
    let order = json!({"size": 100_000, "sha256": DIGITS, "filename": "digits.txt",
        "mediaType": "text/plain"});
    counter.post("/a2a-lambda/uploads", &order).await;
    counter.row("the order of an upload under the limit of a day");
    counter.rows
}

/// Ids as long as real ones: a tenant, a subject of a token, a client's message id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_send_writes_one_table_unit_and_one_index_unit() {
    let agent = Agent::builder("shop").skill(order_status).build().unwrap();
    let counter = Counter::new(agent).await;
    let mut question = message("Where is the order 2026-11-4711 that I placed last Tuesday?");
    question["message"]["messageId"] = json!("0b0c8f5e-7d4e-4a41-9f0d-2f5f3b1c9a77");
    let caller = "Bearer dev:northwind-production:6f9a1c02-53be-4d0e-8a35-9cbb1b4f2e10";
    let headers = [("Authorization", caller)];
    let answer = counter
        .call("/message:send", Some(&question), &headers)
        .await;
    assert!(answer.contains("TASK_STATE_COMPLETED") && answer.contains("Rotterdam"));
    let bill = counter.meter.take();
    assert_eq!(
        bill.requests,
        [("PutItem".to_owned(), 1)].into(),
        "one conditional write"
    );
    let (size, unit) = (counter.meter.largest.load(Ordering::Relaxed), 1024);
    assert_eq!((bill.writes, bill.index_writes), (1, 1), "{size} bytes");
    // 64 bytes stay free for clients that send more.
    assert!(size <= unit - 64, "{size} bytes");
}

/// Names the rows that are measured when an operation never ends.
async fn in_time(rows: &str, measured: impl Future<Output = ()>) {
    let limit = Duration::from_secs(120);
    let done = tokio::time::timeout(limit, measured).await;
    assert!(done.is_ok(), "an operation of `{rows}` does not end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_costs_what_the_document_says() {
    let agent = conformance_agent::agent(Duration::from_secs(2)).unwrap();
    let mut counter = Counter::new(agent).await;
    in_time("sends", Box::pin(sends(&mut counter))).await;
    in_time("failures", Box::pin(failures(&mut counter))).await;
    in_time("undecided", Box::pin(undecided(&mut counter))).await;
    in_time("reads", Box::pin(reads(&mut counter))).await;
    in_time("large", Box::pin(large(&mut counter))).await;
    in_time("conversations", Box::pin(conversations(&mut counter))).await;
    in_time("searches", Box::pin(searches(&mut counter))).await;
    in_time("uploads", Box::pin(uploads(&mut counter))).await;
    in_time("deliveries", Box::pin(deliveries(&mut counter))).await;
    in_time("sweeps", Box::pin(sweeps(&mut counter))).await;
    in_time("larger", Box::pin(larger(&mut counter))).await;
    in_time("later", Box::pin(later(&mut counter))).await;
    in_time("limits", Box::pin(limits(&mut counter))).await;
    let (_, shown) = PAPER.split_once(HEADER).expect("the table of costs");
    let (shown, _) = shown.split_once("\n\n").unwrap();
    let rows = counter.rows.trim_end();
    assert!(shown == rows, "docs/costs.md must have:\n{HEADER}{rows}\n");
}

#[tokio::test]
async fn the_units_in_the_log_are_those_that_the_meter_counts() {
    let counter = Counter::still(conformance_agent::agent(Duration::from_secs(2)).unwrap()).await;
    counter.warm().await;
    let lines = LogLines::default();
    let _guard = lines.capture();
    counter.send("echo hello").await;
    counter.call("/tasks?pageSize=10", None, &[]).await;
    let bill = counter.meter.take();
    let calls = lines.with_message("call");
    assert_eq!(calls.len(), 2, "{}", lines.text());
    let sum = |name: &str| -> f64 { calls.iter().filter_map(|line| line[name].as_f64()).sum() };
    let writes = (bill.writes + bill.index_writes) as f64;
    let reads = bill.half_reads as f64 / 2.0;
    assert_eq!((sum("units.write"), sum("units.read")), (writes, reads));
    assert!(writes > 0.0 && reads > 0.0, "{bill:?}");
    // The turn ran in the call, whose line has its units: none are counted twice.
    assert!(lines.with_message("turn").is_empty(), "{}", lines.text());
}
