//! Contexts: what they keep, for whom and for how long.

use super::{Client, code, id, obedient, obeys};
use crate::contexts::{DAY, HOUR, RESET};
use a2a_lambda_tests::dialect::{Dialect, at};
use a2a_lambda_tests::error_rows::{CONTEXT_EXPIRED, Fault};
use a2a_lambda_tests::per_dialect;
use a2a_lambda_tests::world::{Reply, Request, World};
use serde_json::{Value, json};
use tokio::time::advance;

per_dialect! {
    paused ALL:
    a_context_is_continued_in_every_generation
    a_context_is_refused_a_day_after_its_last_message
    what_a_context_keeps_is_forgotten_after_an_idle_hour_and_the_reply_says_so
    two_callers_have_two_contexts_of_one_id
    a_state_above_its_limit_fails_the_task_with_both_sizes
}

const REST: Dialect = Dialect::Rest10;
const NOTED: &str = r#""noted":"the colour is blue""#;

/// The reply to `recall` in a context, which has what the skill sees there.
async fn recalled(client: &Client<'_>, context: &str) -> Reply {
    let params = client.message("recall", None, Some(context));
    let reply = client.sends(&params).await;
    assert!(reply.text().contains(r#""said":"#), "{}", reply.text());
    reply
}

async fn a_context_is_continued_in_every_generation(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let first = client.says("note the colour is blue").await;
    let context = dialect.context(&first);
    assert!(!context.is_empty(), "{first}");
    for reader in Dialect::ALL {
        let reply = recalled(&Client::new(&world, reader), &context).await;
        assert!(reply.text().contains(NOTED), "{reader:?} {}", reply.text());
        let said = r#""note the colour is blue","the colour is blue""#;
        assert!(reply.text().contains(said), "{reader:?} {}", reply.text());
        assert_eq!(reader.context(&reader.task(&reply)), context);
    }
    let other = recalled(&client, "mine:other").await;
    assert!(!other.text().contains("blue"), "{}", other.text());
}

async fn a_context_is_refused_a_day_after_its_last_message(dialect: Dialect) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let first = client.says("note it first").await;
    let context = dialect.context(&first);
    advance(DAY / 2).await;
    client.says_in(&context, "note it").await;
    advance(DAY - HOUR).await;
    client.says_in(&context, "note it again").await;
    advance(DAY).await;
    let params = client.message("recall", None, Some(&context));
    let reply = client.sends(&params).await;
    let fault = Fault::new(dialect, CONTEXT_EXPIRED);
    assert_eq!(fault.check(&reply), Ok(()), "{}", reply.text());
    let read = client.gets(&first).await;
    assert_eq!(client.state(&read), "completed", "it is still read");
}

async fn what_a_context_keeps_is_forgotten_after_an_idle_hour_and_the_reply_says_so(
    dialect: Dialect,
) {
    let world = obedient();
    let client = Client::new(&world, dialect);
    let first = client.says("note the colour is blue").await;
    let context = dialect.context(&first);
    advance(HOUR - HOUR / 60).await;
    let kept = recalled(&client, &context).await;
    assert!(kept.text().contains(NOTED), "{}", kept.text());
    assert_eq!(at(&dialect.task(&kept), RESET), &Value::Null);
    advance(HOUR).await;
    let gone = recalled(&client, &context).await;
    assert!(!gone.text().contains(NOTED), "{}", gone.text());
    assert_eq!(at(&dialect.task(&gone), RESET), &json!(true));
    // The messages of its tasks remain.
    let said = r#""note the colour is blue""#;
    assert!(gone.text().contains(said), "{}", gone.text());
    let later = recalled(&client, &context).await;
    assert_eq!(at(&dialect.task(&later), RESET), &Value::Null);
}

async fn two_callers_have_two_contexts_of_one_id(dialect: Dialect) {
    let world = obedient();
    let callers = ["acme:ann", "acme:bob", "other:ann"];
    for caller in callers {
        let client = Client::new(&world, dialect).from(caller);
        let task = client.says_in("mine:c", &format!("note {caller}")).await;
        assert_eq!(client.state(&task), "completed");
    }
    for caller in callers {
        let client = Client::new(&world, dialect).from(caller);
        let text = recalled(&client, "mine:c").await.text();
        for other in callers {
            let is_own = other == caller;
            assert_eq!(text.contains(&format!("note {other}")), is_own, "{text}");
        }
    }
}

async fn a_state_above_its_limit_fails_the_task_with_both_sizes(dialect: Dialect) {
    let world = World::serving(obeys, |settings| {
        settings.policy.state_max_bytes = 2000;
    });
    let world = world.unwrap();
    let client = Client::new(&world, dialect);
    let first = client.says("note small").await;
    let context = dialect.context(&first);
    let large = format!("note {}", "x".repeat(3000));
    let failed = client.says_in(&context, &large).await;
    assert_eq!(client.state(&failed), "failed");
    assert_eq!(code(&failed), "STATE_TOO_LARGE");
    let details = at(&failed, "/status/message/metadata/a2a-lambda~1errorDetails");
    assert_eq!(details["allowed"], 2000, "{failed}");
    assert!(details["current"].as_u64().unwrap() > 3000, "{failed}");
    let text = recalled(&client, &context).await.text();
    assert!(text.contains(r#""noted":"small""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn parallel_tasks_of_a_context_lose_no_note_and_are_all_listed() {
    let world = obedient();
    let clients: Vec<_> = Dialect::ALL.map(|it| Client::new(&world, it)).into();
    let notes = clients.iter().flat_map(|client| {
        [1, 2].map(|n| {
            let text = format!("note {:?} {n}", client.dialect);
            async move { client.says_in("mine:c", &text).await }
        })
    });
    for (index, task) in futures::future::join_all(notes).await.iter().enumerate() {
        let client = &clients[index / 2];
        assert_eq!(client.state(task), "completed", "{task}");
    }
    let client = Client::new(&world, REST);
    let text = recalled(&client, "mine:c").await.text();
    for dialect in Dialect::ALL {
        for n in [1, 2] {
            let event = format!(r#""{dialect:?} {n}""#);
            assert!(text.contains(&event), "{event} in {text}");
        }
    }
    let mut listed = Vec::new();
    let mut rest = String::new();
    loop {
        let page = format!("/tasks?contextId=mine:c&pageSize=5{rest}");
        let page = REST.versioned(Request::new("GET", page));
        let page = client.call(page).await.json();
        let tasks = page["tasks"].as_array().unwrap();
        listed.extend(tasks.iter().map(|task| id(task).to_owned()));
        match page["nextPageToken"].as_str() {
            Some(next) if !next.is_empty() => rest = format!("&pageToken={next}"),
            _ => break,
        }
    }
    let count = listed.len();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!((count, listed.len()), (13, 13));
}
