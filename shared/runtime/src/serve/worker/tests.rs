use super::*;
use crate::store::aws::sqs_client;
use std::sync::Mutex;

/// An SQS event, recorded on Lambda.
const EVENT: &str = include_str!("event.json");
/// The same with a body that this program does not write.
const POISON: &str = include_str!("poison.json");

/// Answers each turn with `ack`, and records the calls.
struct Says {
    ack: Ack,
    asked: Mutex<Vec<(WorkItem, Option<Timestamp>)>>,
}

#[async_trait]
impl RunTurn for Says {
    async fn run(
        &self,
        item: &WorkItem,
        _receipt: &dyn Receipt,
        deadline: Option<Timestamp>,
    ) -> Ack {
        self.asked.lock().unwrap().push((item.clone(), deadline));
        self.ack
    }
}

async fn worker(ack: Ack) -> Worker<Says> {
    let client = sqs_client(Some("http://127.0.0.1:9")).await;
    Worker {
        turns: Says {
            ack,
            asked: Mutex::default(),
        },
        queue: SqsQueue::new(client, "http://127.0.0.1:9/work"),
    }
}

async fn answer(worker: &Worker<Says>, event: &str) -> serde_json::Value {
    let event = serde_json::from_str(event).unwrap();
    let response = worker.run(event, Some(Timestamp::from_millis(1_000))).await;
    serde_json::to_value(response).unwrap()
}

#[tokio::test]
async fn a_turn_is_run_with_the_deadline_of_its_invocation() {
    let worker = worker(Ack::Delete).await;
    answer(&worker, EVENT).await;
    let asked = worker.turns.asked.into_inner().unwrap();
    let [(item, deadline)] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(item.owner.tenant.as_str(), "acme");
    assert_eq!(item.task.as_str(), "my-task-1");
    assert_eq!((item.turn, item.dispatch), (1, 2));
    assert_eq!(*deadline, Some(Timestamp::from_millis(1_000)));
}

#[tokio::test]
async fn a_finished_message_is_not_reported() {
    let worker = worker(Ack::Delete).await;
    let expected = serde_json::json!({"batchItemFailures": []});
    assert_eq!(answer(&worker, EVENT).await, expected);
}

#[tokio::test]
async fn a_message_to_deliver_again_is_reported_by_its_id() {
    let worker = worker(Ack::Keep).await;
    let id = "059f36b4-87a3-44ab-83d2-661975830a7d";
    let expected = serde_json::json!({"batchItemFailures": [{"itemIdentifier": id}]});
    assert_eq!(answer(&worker, EVENT).await, expected);
}

#[tokio::test]
async fn an_unreadable_message_is_left_for_the_dead_letter_queue() {
    let worker = worker(Ack::Delete).await;
    let response = answer(&worker, POISON).await;
    assert_eq!(response["batchItemFailures"].as_array().unwrap().len(), 1);
    assert!(worker.turns.asked.into_inner().unwrap().is_empty());
}
