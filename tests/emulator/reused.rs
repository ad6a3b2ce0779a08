//! A client of A2A 0.1 reuses a task id after the task has expired. Every call treats it as
//! a new task, though the table still contains the items of the first one.

use a2a_lambda::prelude::*;
use a2a_lambda::store::contract::noise;
use a2a_lambda::task::Timestamp;
use a2a_lambda_tests::dialect::{Dialect, Op, Say};
use a2a_lambda_tests::error_rows::{FINISHED, Fault, NOT_FOUND};
use a2a_lambda_tests::fixture::{Fixture, Place};
use a2a_lambda_tests::frames::frames;
use a2a_lambda_tests::world::{Reply, Request};
use serde_json::{Value, json};
use std::time::Duration;

const ANN: &str = "acme:ann";
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Stores as much as a task can: messages and chunks too large for its item, a file that is
/// an object, a value. With the text `little` it stores only its result.
#[skill(id = "leaves", tags = ["test"])]
async fn leaves(cx: &mut TaskContext<'_>, said: String) -> AgentResult<String> {
    if let Some(letter) = said.strip_prefix("much ") {
        let seed = letter.chars().map(u64::from).sum();
        let text = |length| letter.repeat(9) + &noise(seed, length).replace('a', "-");
        cx.save_data("kept", &text(40_000)).await?;
        for _ in 0..2 {
            cx.send_intermediate_update(text(8_000)).await?;
        }
        let mut chunks = cx.artifact_chunks("text");
        for _ in 0..12 {
            chunks.push(text(8_000)).await?;
        }
        chunks.finish().await?;
        let bytes = letter.repeat(40_000).into_bytes();
        let file = Artifact::from_file("file.bin", "application/pdf", bytes);
        cx.send_partial_artifact(file).await?;
    }
    Ok("done".to_owned())
}

fn agent() -> AgentDefinition {
    let agent = Agent::builder("leaves").version("1").description("Leaves.");
    agent.skill(leaves).build().unwrap()
}

/// One task of A2A 0.1, addressed by its id.
#[derive(Clone, Copy)]
struct Order<'s> {
    fixture: &'s Fixture,
    dialect: Dialect,
    id: &'s str,
}

impl Order<'_> {
    /// A message with its id, for a stream or a single response.
    fn says(&self, op: Op, text: &str, key: &str) -> Request {
        let say = Say::to("leaves", text).under(self.id);
        let mut params = self.dialect.say(&say);
        params["historyLength"] = json!(100);
        if !key.is_empty() {
            params["metadata"] = json!({"a2a-lambda/idempotencyKey": key});
        }
        self.dialect.request(op, "", &params)
    }

    async fn call(&self, request: &Request) -> Reply {
        self.fixture.call(request, ANN).await
    }

    /// Runs the first task of the id, with everything a task can store. Returns the ids of its
    /// stream events.
    async fn leaves_much(&self) -> Vec<String> {
        let mut stream = self.says(Op::Stream, "much a", "old");
        let mut body: Value = serde_json::from_slice(&stream.body).unwrap();
        let params = match self.dialect {
            Dialect::Rpc01 => &mut body["params"],
            _ => &mut body,
        };
        params["pushNotification"] = json!({"url": "https://hook.example/old"});
        stream.body = body.to_string().into();
        let shown = frames(&self.call(&stream).await).unwrap();
        let last = shown.last().map(|frame| self.dialect.described(frame));
        assert_eq!(last.as_deref(), Some("status completed"));
        shown.into_iter().filter_map(|frame| frame.id).collect()
    }

    /// Every request that reads it.
    fn reads(&self, marks: &[String]) -> Vec<Request> {
        let id = self.id;
        let hook = json!({"id": id});
        let mut all = vec![
            self.dialect.get(id, 100),
            match self.dialect {
                Dialect::Rpc01 => Request::post(
                    "/",
                    &json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/pushNotification/get",
                        "params": hook}),
                ),
                _ => Request::post("/tasks/pushNotification/get", &hook),
            },
            Dialect::Rest10.of_task(Op::Get, id),
            Dialect::Rest10.versioned(Request::new(
                "GET",
                format!("/tasks/{id}/pushNotificationConfigs"),
            )),
            self.dialect.of_task(Op::Subscribe, id),
        ];
        for mark in marks {
            let resume = self.dialect.of_task(Op::Subscribe, id);
            all.push(resume.header("last-event-id", mark));
        }
        all
    }

    /// The responses to these requests, without the names of this task.
    async fn shown(&self, requests: Vec<Request>) -> Vec<String> {
        let mut shown = Vec::new();
        for request in requests {
            let reply = self.call(&request).await;
            let text = reply.text().replace(self.id, "the order");
            // The id of an event names the life of its task.
            let lines = text.lines().filter(|line| !line.starts_with("id: "));
            let text = lines.collect::<Vec<_>>().join("\n");
            shown.push(format!("{} {}", reply.status, unnamed(&text)));
        }
        shown
    }
}

/// The text with every server-made id cut down to its kind.
fn unnamed(text: &str) -> String {
    let mut rest = text;
    let mut unnamed = String::new();
    while let Some(at) = ["artifact-", "msg-", "ctx-"]
        .iter()
        .filter_map(|kind| rest.find(kind).map(|at| at + kind.len()))
        .min()
    {
        let (head, tail) = rest.split_at(at);
        unnamed.push_str(head);
        rest = tail.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    unnamed + rest
}

async fn is_gone(order: &Order<'_>, marks: &[String]) {
    for request in order.reads(marks) {
        let reply = order.call(&request).await;
        let dialect = match request
            .headers
            .iter()
            .any(|(name, _)| name == "a2a-version")
        {
            true => Dialect::Rest10,
            false => order.dialect,
        };
        let fault = Fault::new(dialect, NOT_FOUND);
        assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
    }
}

/// Asserts that the responses of a second task contain nothing of the first.
fn has_nothing_of_the_first(shown: &[String]) {
    for answer in shown {
        // Its letter, as text and in Base64; its message; its webhook.
        for of_the_first in ["aaaa", "YWFh", "much a", "hook.example/old"] {
            assert!(!answer.contains(of_the_first), "{of_the_first}: {answer}");
        }
    }
}

async fn is_used_again(fixture: &Fixture, dialect: Dialect, text: &str) {
    let order = |id| Order {
        fixture,
        dialect,
        id,
    };
    let (used, fresh) = (order("order:1"), order("order:2"));
    let begun: Timestamp = fixture.now();
    let marks = used.leaves_much().await;
    assert!(marks.len() > 10, "{marks:?}");
    fixture.set(begun, MONTH - MILLISECOND);
    let there = used.shown(used.reads(&[])).await;
    assert!(there[0].contains("aaaa") && there[0].contains("YWFh"));
    assert!(there[1].contains("hook.example/old") && there[3].contains("hook.example/old"));
    for late in [MONTH, MONTH + MILLISECOND] {
        fixture.set(begun, late);
        is_gone(&used, &marks).await;
    }

    // The same message under a reused and under a fresh id gives the same responses.
    let mut both = Vec::new();
    for order in [used, fresh] {
        let sent = order.call(&order.says(Op::Send, text, "")).await;
        let task = dialect.task(&sent);
        assert_eq!(dialect.state(&task), "completed", "{}", sent.text());
        let mut shown = order.shown(order.reads(&marks)).await;
        has_nothing_of_the_first(&shown);
        // The first task's key no longer replays: the message reaches the second task, which has
        // completed.
        let again = order.call(&order.says(Op::Send, "much a", "old")).await;
        let fault = Fault::new(dialect, FINISHED);
        assert_eq!(fault.check(&again), Ok(()), "{}", again.text());
        shown.extend(order.shown(order.reads(&[])).await);
        both.push(shown);
    }
    for (used, fresh) in both[0].iter().zip(&both[1]) {
        assert_eq!(used, fresh, "{dialect:?} {text}");
    }
    let other = order("order:3");
    let other = other.call(&other.says(Op::Send, "little", "old")).await;
    assert_eq!(dialect.state(&dialect.task(&other)), "completed");
}

#[tokio::test]
async fn a_task_with_a_reused_id_shows_nothing_of_the_expired_one() {
    for place in Place::ALL {
        for dialect in [Dialect::Rpc01, Dialect::Path01] {
            for text in ["little", "much b"] {
                let fixture = Fixture::at(place, agent(), |_| ()).await.unwrap();
                println!("{place:?} {dialect:?} {text}");
                is_used_again(&fixture, dialect, text).await;
            }
        }
    }
}
