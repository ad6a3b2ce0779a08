use super::*;
use crate::store::aws::sqs_client;
use std::sync::{Mutex, MutexGuard};

/// An SQS event, recorded on Lambda.
const EVENT: &str = include_str!("event.json");
/// The same with a body that this program does not write.
const POISON: &str = include_str!("poison.json");

/// When the invocation ends.
const DEADLINE: Timestamp = Timestamp::from_millis(1_000);

/// The response to an event whose turns end with `ack`, and the turns.
async fn answer(ack: Ack, event: &str) -> (serde_json::Value, Vec<WorkItem>) {
    let client = sqs_client(Some("http://127.0.0.1:9")).await;
    let queue = SqsQueue::new(client, "http://127.0.0.1:9/work");
    let turns = Mutex::default();
    let turn = async |item: &WorkItem, _: &dyn Receipt, deadline| {
        assert_eq!(deadline, Some(DEADLINE), "of the invocation");
        turns
            .lock()
            .map(|mut it: MutexGuard<'_, Vec<_>>| it.push(item.clone()))
            .unwrap();
        ack
    };
    let event = serde_json::from_str(event).unwrap();
    let response = respond((&queue, None), event, Some(DEADLINE), turn).await;
    let response = serde_json::to_value(response).unwrap();
    (response, turns.into_inner().unwrap())
}

#[tokio::test]
async fn a_message_names_its_turn() {
    let (_, turns) = answer(Ack::Delete, EVENT).await;
    let [item] = turns.as_slice() else {
        panic!("{turns:?}");
    };
    assert_eq!(item.owner.tenant.as_str(), "acme");
    assert_eq!(item.task.as_str(), "my-task-1");
    assert_eq!((item.turn, item.dispatch), (1, 2));
}

#[tokio::test]
async fn a_finished_message_is_not_reported() {
    let expected = serde_json::json!({"batchItemFailures": []});
    assert_eq!(answer(Ack::Delete, EVENT).await.0, expected);
}

#[tokio::test]
async fn a_message_to_deliver_again_is_reported_by_its_id() {
    let id = "059f36b4-87a3-44ab-83d2-661975830a7d";
    let expected = serde_json::json!({"batchItemFailures": [{"itemIdentifier": id}]});
    assert_eq!(answer(Ack::Keep, EVENT).await.0, expected);
}

#[tokio::test]
async fn an_unreadable_message_stays_if_no_queue_of_dead_letters_is_set() {
    let (response, turns) = answer(Ack::Delete, POISON).await;
    assert_eq!(response["batchItemFailures"].as_array().unwrap().len(), 1);
    assert!(turns.is_empty());
}
