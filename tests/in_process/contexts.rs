//! Contexts: when they are written, what they keep, and how they are listed.

use a2a_lambda_rows::{each_row, each_row_async};
use a2a_lambda_tests::dialect::{Dialect, Op, Say, at};
use a2a_lambda_tests::error_rows::{CONTEXT_EXPIRED, Fault, PARAMS};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_client_made_context_is_written_with_its_first_task
    an_idle_hour_expires_the_context_state_and_the_reply_says_so
    two_callers_may_use_the_same_context_id
}

per_dialect! {
    paused [Rpc10, Rest10, Rpc03, Rest03]:
    a_server_made_context_is_written_with_its_second_task
}

per_dialect! {
    paused [Rpc10, Rest10]:
    streams_and_direct_replies_report_an_expired_state
}

per_dialect! {
    paused [Rpc01, Path01]:
    a_second_task_of_a_0_1_session_does_not_read_the_index
}

pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(super) const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
pub(super) const RESET: &str = "/metadata/a2a-lambda~1contextReset";

/// How a context was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// The server made its id; it has one task.
    Derived,
    /// The server made its id; it has two tasks.
    Second,
    /// The client made its id.
    Own,
}

pub(super) const KINDS: [Kind; 3] = [Kind::Derived, Kind::Second, Kind::Own];

/// Sends a message for a new task in a context.
pub(super) async fn say(
    world: &World,
    dialect: Dialect,
    to: &str,
    text: &str,
    context: &str,
) -> Reply {
    let name = format!("t:{}", world.store.commits().len());
    let mut say = Say::to(to, text).under(&name);
    if !context.is_empty() {
        say = say.in_context(context);
    }
    world.call(&dialect.send(&say)).await
}

pub(super) async fn done(
    world: &World,
    dialect: Dialect,
    to: &str,
    text: &str,
    context: &str,
) -> Value {
    let reply = say(world, dialect, to, text, context).await;
    let task = dialect.task(&reply);
    let state = dialect.state(&task);
    assert!(
        ["completed", "input-required"].contains(&state.as_str()),
        "{}",
        reply.text()
    );
    task
}

pub(super) fn answer(dialect: Dialect, task: &Value) -> String {
    dialect.words(&task["artifacts"][0])
}

/// A context without a running turn: its id, and its task that waits for input.
pub(super) async fn conversation(world: &World, dialect: Dialect, kind: Kind) -> (String, Value) {
    let name = if kind == Kind::Own { "mine:c" } else { "" };
    let task = done(world, dialect, "ask", "hi", name).await;
    let context = dialect.context(&task);
    if kind == Kind::Second {
        done(world, dialect, "echo", "hi", &context).await;
    }
    (context, task)
}

/// The same after the question has been answered.
pub(super) async fn ended(world: &World, dialect: Dialect, kind: Kind) -> String {
    let (context, asked) = conversation(world, dialect, kind).await;
    let id = asked["id"].as_str().unwrap();
    let reply = world.call(&dialect.send(&Say::in_task(id, "blue"))).await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "completed", "{}", reply.text());
    context
}

pub(super) fn expired(dialect: Dialect, reply: &Reply) {
    let fault = Fault::new(dialect, CONTEXT_EXPIRED);
    assert_eq!(fault.check(reply), Ok(()), "{dialect:?} {}", reply.text());
}

async fn a_server_made_context_is_written_with_its_second_task(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = done(&world, dialect, "echo", "hi", "").await;
    let context = dialect.context(&task);
    assert_eq!(world.store.writes(), 1, "{dialect:?}");
    done(&world, dialect, "echo", "hi", &context).await;
    assert_eq!(world.store.thread_writes(), 1, "{dialect:?}");
    // A thread that was just written is not written again.
    for _ in 0..5 {
        advance(Duration::from_secs(20)).await;
        done(&world, dialect, "echo", "hi", &context).await;
    }
    assert_eq!(world.store.thread_writes(), 1, "{dialect:?}");
    advance(Duration::from_secs(100)).await;
    done(&world, dialect, "echo", "hi", &context).await;
    assert_eq!(world.store.thread_writes(), 2, "{dialect:?}");
}

async fn a_client_made_context_is_written_with_its_first_task(dialect: Dialect) {
    let world = World::new().unwrap();
    done(&world, dialect, "echo", "hi", "mine:c").await;
    assert_eq!(world.store.thread_writes(), 1, "{dialect:?}");
    done(&world, dialect, "echo", "hi", "mine:c").await;
    assert_eq!(world.store.thread_writes(), 1, "{dialect:?}");
    // A reply without a task writes nothing.
    let world = World::new().unwrap();
    if !dialect.is_v01() {
        say(&world, dialect, "greet", "hi", "mine:c").await;
        assert_eq!(world.store.writes(), 0, "{dialect:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_fails_if_the_thread_cannot_be_written() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    world.store.refuse_threads(true);
    let reply = say(&world, dialect, "echo", "hi", "mine:c").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    world.store.refuse_threads(false);
    done(&world, dialect, "echo", "hi", "mine:c").await;
}

async fn an_idle_hour_expires_the_context_state_and_the_reply_says_so(dialect: Dialect) {
    each_row_async(KINDS, async |kind| {
        let silences = [
            (HOUR - Duration::from_millis(1), false),
            (HOUR, true),
            (HOUR + Duration::from_millis(1), true),
        ];
        for (silence, gone) in silences {
            let world = World::new().unwrap();
            let context = ended(&world, dialect, kind).await;
            advance(Duration::from_millis(1)).await;
            let orders = "set colour blue add noted";
            done(&world, dialect, "notes", orders, &context).await;
            advance(silence).await;
            let task = done(&world, dialect, "notes", "get colour", &context).await;
            let expected = if gone { "nothing" } else { "blue" };
            assert_eq!(answer(dialect, &task), expected, "{dialect:?} {kind:?}");
            let said = at(&task, RESET) == &Value::Bool(true);
            assert_eq!(said, gone, "{dialect:?} {kind:?} {task}");
            // The messages of the tasks remain; what the skill added does not.
            let task = done(&world, dialect, "notes", "show", &context).await;
            assert_eq!(at(&task, RESET), &Value::Null, "it is reported once");
            let thread = answer(dialect, &task);
            assert!(
                thread.contains("hi|which one?") && thread.contains("|set colour"),
                "{thread}"
            );
            assert_eq!(thread.contains("|noted"), !gone, "{thread}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_does_not_use_up_the_reset_notice() {
    let dialect = Dialect::Rest10;
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let context = ended(&world, dialect, kind).await;
        done(&world, dialect, "notes", "set colour blue", &context).await;
        advance(HOUR).await;
        let writes = world.store.thread_writes();
        let reply = say(&world, dialect, "no-such-skill", "hi", &context).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        let mut more = dialect.say(&Say::to("echo", "red").in_context(&context));
        let parts = more["message"]["parts"].as_array_mut().unwrap();
        parts.push(json!({"url": "urn:a2a-lambda:upload:none"}));
        let reply = world.call(&dialect.request(Op::Send, "", &more)).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        assert_eq!(world.store.thread_writes(), writes, "{kind:?}");
        let task = done(&world, dialect, "notes", "get colour", &context).await;
        assert_eq!(at(&task, RESET), &Value::Bool(true), "{kind:?}");
    })
    .await;
}

async fn streams_and_direct_replies_report_an_expired_state(dialect: Dialect) {
    let world = World::new().unwrap();
    let context = ended(&world, dialect, Kind::Own).await;
    done(&world, dialect, "notes", "set k v", &context).await;
    advance(HOUR).await;
    let request = dialect.stream(&Say::to("chunks", "go").in_context(&context));
    let text = world.call(&request).await.text();
    assert_eq!(text.matches("contextReset").count(), 1, "{text}");
    done(&world, dialect, "notes", "set k v", &context).await;
    advance(HOUR).await;
    let reply = say(&world, dialect, "greet", "hi", &context).await;
    let message = dialect.result(&reply)["message"].clone();
    assert_eq!(at(&message, RESET), &Value::Bool(true), "{}", reply.text());
}

#[tokio::test(start_paused = true)]
async fn a_context_that_kept_nothing_has_no_reset_to_report() {
    let dialect = Dialect::Rest10;
    each_row_async(KINDS, async |kind| {
        let world = World::new().unwrap();
        let context = ended(&world, dialect, kind).await;
        for _ in 0..3 {
            advance(HOUR).await;
            let task = done(&world, dialect, "echo", "more", &context).await;
            assert_eq!(at(&task, RESET), &Value::Null, "{kind:?}");
        }
        // What it keeps from now on lives and ends as before, also if a sweep comes first.
        done(&world, dialect, "notes", "set k v", &context).await;
        advance(HOUR * 2).await;
        world.sweep_threads().await.unwrap();
        let task = done(&world, dialect, "echo", "more", &context).await;
        assert_eq!(at(&task, RESET), &Value::Bool(true), "{kind:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn parallel_tasks_of_a_context_keep_each_others_writes() {
    let world = World::new().unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "echo", "hi", "mine:c").await;
    let before = world.store.commits().len();
    let calls = (0..16).map(|n| {
        let world = &world;
        async move {
            let text = format!("wait set k{n} v{n} add e{n}");
            say(world, dialect, "notes", &text, "mine:c").await
        }
    });
    let all = futures::future::join_all(calls);
    let race = async {
        // All tasks run; then all of them read the same thread before the first
        // one writes.
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.store.hold();
        world.gate.open();
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.store.release();
    };
    let (replies, ()) = tokio::join!(all, race);
    for reply in replies {
        let state = dialect.state(&dialect.task(&reply));
        assert_eq!(state, "completed", "{}", reply.text());
    }
    assert!(
        world.store.commits().len() > before + 32,
        "there was no race"
    );
    for n in 0..16 {
        let order = format!("get k{n}");
        let task = done(&world, dialect, "notes", &order, "mine:c").await;
        assert_eq!(answer(dialect, &task), format!("v{n}"));
    }
    let task = done(&world, dialect, "notes", "show", "mine:c").await;
    let thread = answer(dialect, &task);
    let mut events: Vec<&str> = thread.split('|').filter(|it| it.starts_with('e')).collect();
    events.sort_unstable();
    let mut expected: Vec<String> = (0..16).map(|n| format!("e{n}")).collect();
    expected.sort();
    assert_eq!(events, expected);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_overfills_its_context_fails_and_leaves_it_unchanged() {
    let world = World::with(|settings| settings.policy.state_max_bytes = 2_000).unwrap();
    let dialect = Dialect::Rest10;
    done(&world, dialect, "notes", "fill a 1000", "mine:c").await;
    let reply = say(&world, dialect, "notes", "set b 1 fill c 1000", "mine:c").await;
    let task = dialect.task(&reply);
    assert_eq!(dialect.state(&task), "failed", "{}", reply.text());
    let metadata = at(&task, "/status/message/metadata");
    assert_eq!(metadata["a2a-lambda/errorCode"], "STATE_TOO_LARGE");
    let details = &metadata["a2a-lambda/errorDetails"];
    assert_eq!(details["allowed"], 2_000, "{details}");
    assert!(details["current"].as_u64().unwrap() > 2_000, "{details}");
    let task = done(&world, dialect, "notes", "get b", "mine:c").await;
    assert_eq!(answer(dialect, &task), "nothing");
    done(&world, dialect, "notes", "fill a 10 set x", "mine:c").await;
    done(&world, dialect, "notes", "set b 1 fill c 1000", "mine:c").await;
}

async fn a_second_task_of_a_0_1_session_does_not_read_the_index(dialect: Dialect) {
    let world = World::new().unwrap();
    let task = done(&world, dialect, "echo", "hi", "").await;
    let context = dialect.context(&task);
    // The index has lost the first task.
    world.store.lose_lists(true);
    done(&world, dialect, "echo", "more", &context).await;
}

async fn two_callers_may_use_the_same_context_id(dialect: Dialect) {
    let world = World::new().unwrap();
    let mine = Say::to("echo", "hi").under("t:1").in_context("shared");
    let first = dialect.send(&mine).from("acme:ann");
    let theirs = dialect.send(&mine).from("evil:eve");
    let first = world.call(&first).await;
    let theirs = world.call(&theirs).await;
    let (first, theirs) = (dialect.task(&first), dialect.task(&theirs));
    assert_eq!(dialect.context(&theirs), "shared");
    assert_eq!(at(&theirs, RESET), &Value::Null);
    assert_eq!(answer(dialect, &first), answer(dialect, &theirs));
}

/// A request to one of the runtime's own paths.
pub(super) fn ours(method: &'static str, path: &str) -> Request {
    Request::new(method, format!("/a2a-lambda/{path}"))
}

pub(super) async fn contexts(world: &World, query: &str, caller: &'static str) -> Value {
    let reply = world
        .call(&ours("GET", &format!("contexts{query}")).from(caller))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

pub(super) fn ids(page: &Value) -> Vec<&str> {
    let contexts = page["contexts"].as_array().unwrap();
    contexts
        .iter()
        .map(|it| it["contextId"].as_str().unwrap())
        .collect()
}

/// Opens a task for the caller `acme:ann`; returns its context.
pub(super) async fn as_ann(world: &World, to: &str, context: &str) -> String {
    let dialect = Dialect::Rest10;
    let mut say = Say::to(to, "hi");
    if !context.is_empty() {
        say = say.in_context(context);
    }
    let reply = world.call(&dialect.send(&say).from("acme:ann")).await;
    dialect.task(&reply)["contextId"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[tokio::test(start_paused = true)]
async fn contexts_are_listed_newest_activity_first() {
    let world = World::new().unwrap();
    let mut expected = Vec::new();
    for name in ["", "mine:1", "", "mine:2", ""] {
        expected.push(as_ann(&world, "echo", name).await);
        advance(Duration::from_secs(400)).await;
    }
    // Activity makes the first context the newest.
    let first = expected.remove(0);
    as_ann(&world, "echo", &first).await;
    expected.push(first);
    expected.reverse();
    let page = contexts(&world, "", "acme:ann").await;
    assert_eq!(ids(&page), expected);
    assert_eq!(page["nextPageToken"], "");
    assert_eq!(page["pageSize"], 50);
    let one = &page["contexts"][0];
    assert_eq!(one["status"], "active");
    each_row(["createdAt", "updatedAt", "expiresAt"], |time| {
        assert!(one[time].as_str().unwrap().ends_with('Z'), "{one}");
    });
    let mut joined = Vec::new();
    let mut query = "?pageSize=2".to_owned();
    for _ in 0..3 {
        let page = contexts(&world, &query, "acme:ann").await;
        joined.extend(ids(&page).into_iter().map(str::to_owned));
        query = format!(
            "?pageSize=2&pageToken={}",
            page["nextPageToken"].as_str().unwrap()
        );
    }
    assert_eq!(joined, expected);
    advance(DAY).await;
    let page = contexts(&world, "", "acme:ann").await;
    assert_eq!(ids(&page), Vec::<&str>::new(), "no expired one is listed");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_contexts_belongs_to_one_caller() {
    let world = World::new().unwrap();
    for _ in 0..2 {
        as_ann(&world, "echo", "").await;
        advance(Duration::from_secs(1)).await;
    }
    let page = contexts(&world, "?pageSize=1", "acme:ann").await;
    let token = page["nextPageToken"].as_str().unwrap();
    for caller in ["evil:ann", "acme:bob"] {
        assert_eq!(ids(&contexts(&world, "", caller).await), Vec::<&str>::new());
        each_row_async([token, "x.y", ""], async |token| {
            let query = format!("contexts?pageToken={token}");
            let reply = world.call(&ours("GET", &query).from(caller)).await;
            let fault = Fault::new(Dialect::Rest10, PARAMS).at("pageToken");
            let good = token.is_empty() && reply.status == 200;
            assert!(
                good || fault.check(&reply) == Ok(()),
                "{token} {}",
                reply.text()
            );
        })
        .await;
    }
    let rows = [
        "contexts?pageSize=0",
        "contexts?pageSize=101",
        "contexts?pageSize=x",
    ];
    each_row_async(rows, async |query| {
        let reply = world.call(&ours("GET", query)).await;
        let fault = Fault::new(Dialect::Rest10, PARAMS).at("pageSize");
        assert_eq!(fault.check(&reply), Ok(()), "{query}");
    })
    .await;
}
