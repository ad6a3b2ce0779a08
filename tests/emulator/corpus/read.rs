//! This release reads and continues the tasks that earlier releases have stored.

use super::{Corpus, Endpoint, NOW, body, owner, releases, tasks_of, text, untyped, with_body};
use a2a_lambda::store::queue::{Ack, Receipt, WorkItem};
use a2a_lambda::store::{StoreError, ThreadWrite};
use a2a_lambda::task::{
    ContextId, Delivery, PushLease, TaskId, TaskRecord, TaskState, Timestamp, WriteId,
};
use a2a_lambda_tests::world::Request;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::time::Duration;

struct Held;

#[async_trait]
impl Receipt for Held {
    async fn hide(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Calls `act` on each task of a corpus with a fitting state, each in its own table.
async fn each(
    fits: impl Fn(TaskState) -> bool,
    act: impl AsyncFn(&Endpoint, &TaskRecord),
) -> usize {
    let mut found = 0;
    for release in releases() {
        let corpus = Corpus::read(&release);
        for (id, item) in tasks_of(&corpus.items) {
            let state = TaskState::parse(&text(item, "state")).unwrap();
            if !fits(state) {
                continue;
            }
            let site = Endpoint::with(&corpus).await;
            let record = site.load(&id).await.unwrap();
            // By then every lease has ended.
            site.clock.set(Timestamp::from_millis(NOW + 3_600_000));
            act(&site, &record).await;
            found += 1;
        }
    }
    found
}

async fn state(site: &Endpoint, task: &TaskRecord) -> TaskState {
    site.load(task.id.as_str()).await.unwrap().state()
}

#[tokio::test]
async fn stored_content_of_every_release_reads_as_expected() {
    for release in releases() {
        let corpus = Corpus::read(&release);
        let site = Endpoint::with(&corpus).await;
        let read = site.facts(&corpus.items).await;
        let (read, expected) = (
            read.as_object().unwrap(),
            corpus.expected.as_object().unwrap(),
        );
        for (name, expected) in expected {
            assert_eq!(read.get(name), Some(expected), "{release}: {name}");
        }
        assert_eq!(read.len(), expected.len(), "{release}");
    }
}

#[tokio::test]
async fn a_turn_begun_by_an_earlier_release_is_claimed_and_finished() {
    let runs = |state| matches!(state, TaskState::Submitted | TaskState::Working);
    let claimed = each(runs, async |site, task| {
        let item = WorkItem {
            owner: owner(),
            task: task.id.clone(),
            incarnation: task.incarnation.clone(),
            turn: task.turn,
            dispatch: task.version,
        };
        let ack = site.runtime.engine().turns.work(&item, &Held, None).await;
        assert_eq!(ack, Ack::Delete, "{}", &task.id);
        let now = site.load(task.id.as_str()).await.unwrap();
        let asked = ["heard"].contains(&task.id.as_str());
        let expected = if asked {
            TaskState::InputRequired
        } else {
            TaskState::Completed
        };
        assert_eq!(now.state(), expected, "{}", &task.id);
        assert_eq!(now.epoch, task.epoch + 1, "{}", &task.id);
        let before: Vec<_> = task.events_after(0).collect();
        let after: Vec<_> = now.events_after(0).take(before.len()).collect();
        assert_eq!(before, after, "{}", &task.id);
    })
    .await;
    assert!(claimed >= 7 * releases().len(), "{claimed}");
}

#[tokio::test]
async fn a_question_asked_by_an_earlier_release_can_be_answered() {
    let asked = each(TaskState::is_interrupted, async |site, task| {
        let answer = json!({"message": {
            "messageId": "answer-1", "role": "ROLE_USER", "taskId": task.id.as_str(),
            "parts": [{"text": "echo answered"}],
        }});
        let reply = site.call(Request::post("/message:send", &answer)).await;
        assert_eq!(reply.status, 200, "{}: {}", &task.id, reply.text());
        assert_eq!(
            state(site, task).await,
            TaskState::Completed,
            "{}",
            &task.id
        );
    })
    .await;
    assert!(asked >= 3 * releases().len(), "{asked}");
}

#[tokio::test]
async fn an_open_task_of_an_earlier_release_can_be_canceled() {
    let open = each(
        |state| !state.is_terminal(),
        async |site, task| {
            let path = format!("/tasks/{}:cancel", &task.id);
            let reply = site.call(Request::post(path, &json!({}))).await;
            assert_eq!(reply.status, 200, "{}: {}", &task.id, reply.text());
            assert_eq!(state(site, task).await, TaskState::Canceled, "{}", &task.id);
        },
    )
    .await;
    assert!(open >= 10 * releases().len(), "{open}");
}

#[tokio::test]
async fn a_keyed_send_answered_by_an_earlier_release_is_not_repeated() {
    for release in releases() {
        let corpus = Corpus::read(&release);
        let site = Endpoint::with(&corpus).await;
        for (words, id, key) in [
            ("echo hello", "m3", "key-2"),
            ("", "tck-message-response-1", "key-3"),
        ] {
            let send = json!({"message": {
                "messageId": id, "role": "ROLE_USER", "parts": [{"text": words}],
            }});
            let request = Request::post("/message:send", &send).header("idempotency-key", key);
            let reply = site.call(request).await;
            assert_eq!(reply.status, 200, "{release}: {}", reply.text());
        }
        assert_eq!(site.items().await, corpus.items, "{release}");
    }
}

/// The item with additions that a later release could make: a member in its body and an
/// attribute.
fn later(item: &Value) -> Value {
    let mut item = item.clone();
    let texts = ["META", "STATE"].contains(&text(&item, "SK").as_str());
    if texts && item.get("body").is_some() {
        let mut body = body(&item);
        body["later"] = json!({"of": [0.1, null]});
        item = with_body(&item, &body);
    }
    if text(&item, "SK") == "META" || text(&item, "SK").starts_with("PUSH#") {
        item["later"] = json!({"S": "too"});
    }
    item
}

fn has_later(item: &Value) -> (bool, bool) {
    (
        body(item)["later"] == json!({"of": [0.1, null]}),
        item["later"] == json!({"S": "too"}),
    )
}

async fn item_of(site: &Endpoint, partition: &str, sort: &str) -> Value {
    let items = site.items().await.into_iter();
    let mut own = items.filter(|item| text(item, "PK") == partition && text(item, "SK") == sort);
    own.next().unwrap()
}

/// During a rollback the current release keeps the additions of the later one, so that it
/// finds them after the next upgrade.
#[tokio::test]
async fn writes_keep_the_members_that_a_later_release_added() {
    for release in releases() {
        let mut corpus = Corpus::read(&release);
        corpus.items = corpus.items.iter().map(later).collect();
        for (id, item) in tasks_of(&corpus.items) {
            let state = TaskState::parse(&text(item, "state")).unwrap();
            if state.is_terminal() {
                continue;
            }
            let site = Endpoint::with(&corpus).await;
            let before = site.load(&id).await.unwrap();
            site.clock.set(Timestamp::from_millis(NOW + 3_600_000));
            let path = format!("/tasks/{id}:cancel");
            let reply = site.call(Request::post(path, &json!({}))).await;
            assert_eq!(reply.status, 200, "{release} {id}: {}", reply.text());
            let stored = item_of(&site, &text(item, "PK"), "META").await;
            assert_eq!(has_later(&stored), (true, true), "{release} {id}");
            let after = site.load(&id).await.unwrap();
            assert!(after.version > before.version);
        }
    }
}

#[tokio::test]
async fn thread_writes_keep_the_members_that_a_later_release_added() {
    for release in releases() {
        let mut corpus = Corpus::read(&release);
        corpus.items = corpus.items.iter().map(later).collect();
        let site = Endpoint::with(&corpus).await;
        // The thread of a context, and its state.
        let id = ContextId::parse("about-asking").unwrap();
        let mut record = site
            .records
            .load_thread(&owner(), &id)
            .await
            .unwrap()
            .unwrap();
        let expect = record.version;
        (record.version, record.state_version) = (expect + 1, expect + 1);
        record.state.session.insert("more".to_owned(), json!(1));
        let write = WriteId::made_of(u128::MAX);
        let write = ThreadWrite {
            record,
            expect,
            write,
        };
        assert!(site.records.put_thread(&write).await.unwrap());
        let items = site.items().await;
        // A pointer is written once and never changes.
        let kept = |item: &&Value| {
            text(item, "PK").ends_with("#about-asking") && !text(item, "SK").starts_with("TASK#")
        };
        let sorts: Vec<_> = items
            .iter()
            .filter(kept)
            .map(|item| (text(item, "SK"), has_later(item).0))
            .collect();
        assert_eq!(
            sorts,
            [("META".to_owned(), true), ("STATE".to_owned(), true)],
            "{release}"
        );
    }
}

#[tokio::test]
async fn a_push_config_of_a_later_release_still_records_deliveries() {
    for release in releases() {
        let mut corpus = Corpus::read(&release);
        corpus.items = corpus
            .items
            .iter()
            .map(|item| {
                let mut item = later(item);
                if text(&item, "SK") == "PUSH#hook" {
                    let mut body = body(&item);
                    body["later"] = json!(true);
                    item["body"]["S"] = json!(body.to_string());
                }
                item
            })
            .collect();
        let site = Endpoint::with(&corpus).await;
        let task = TaskId::parse("heard").unwrap();
        let pushes = site.records.pushes(&owner(), &task).await.unwrap();
        assert_eq!(pushes.len(), 1, "{release}");
        let push = &pushes[0];
        let lease = PushLease {
            holder: WriteId::made_of(1),
            until: Timestamp::from_millis(NOW + 30_000),
        };
        let now = Timestamp::from_millis(NOW);
        let deliveries = site.records.deliveries();
        let leased = deliveries.lease_push(push, &lease, now);
        assert!(leased.await.unwrap(), "{release}");
        let further = Delivery::after(push.delivery.cursor + 1);
        let deliveries = site.records.deliveries();
        let moved = deliveries.note_delivery(push, &lease.holder, &further);
        assert!(moved.await.unwrap(), "{release}");
        let items = site.items().await;
        let stored = items.iter().find(|item| {
            text(item, "SK") == "PUSH#hook#SENT"
                && item["cursor"] == json!({"N": further.cursor.to_string()})
        });
        let stored = stored.unwrap();
        assert!(has_later(stored).1, "{release}");
        assert!(untyped(stored).contains_key("mark"));
        let read = site.records.pushes(&owner(), &task).await.unwrap();
        assert_eq!(read[0].delivery, further, "{release}");
        let registered = items.iter().find(|item| text(item, "SK") == "PUSH#hook");
        assert!(text(registered.unwrap(), "body").contains("later"));
    }
}
