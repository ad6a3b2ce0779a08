use super::*;
use crate::store::aws::{AwsClients, Endpoints};
use std::sync::Mutex;

/// A message as the queue hands it over, recorded from an event of Lambda.
const EVENT: &str = include_str!("event.json");
/// The same with a body that nobody has written.
const POISON: &str = include_str!("poison.json");

/// Says the same of every turn, and takes note of it.
struct Says {
    ack: Ack,
    asked: Mutex<Vec<(WorkItem, Option<Timestamp>)>>,
}

#[async_trait]
impl Turns for Says {
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
    let clients = AwsClients::connect(&Endpoints::at("http://127.0.0.1:9")).await;
    Worker {
        turns: Says {
            ack,
            asked: Mutex::default(),
        },
        queue: SqsQueue::new(clients.sqs, "http://127.0.0.1:9/work"),
    }
}

async fn answer(worker: &Worker<Says>, event: &str) -> serde_json::Value {
    let event = serde_json::from_str(event).unwrap();
    let response = worker.run(event, ends_at(1_000)).await;
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
async fn work_that_is_done_is_not_reported() {
    let worker = worker(Ack::Delete).await;
    let expected = serde_json::json!({"batchItemFailures": []});
    assert_eq!(answer(&worker, EVENT).await, expected);
}

#[tokio::test]
async fn a_message_that_has_to_come_again_is_reported_by_its_id() {
    let worker = worker(Ack::Keep).await;
    let id = "059f36b4-87a3-44ab-83d2-661975830a7d";
    let expected = serde_json::json!({"batchItemFailures": [{"itemIdentifier": id}]});
    assert_eq!(answer(&worker, EVENT).await, expected);
}

#[tokio::test]
async fn a_message_nobody_can_read_is_left_for_the_dead_letters() {
    let worker = worker(Ack::Delete).await;
    let response = answer(&worker, POISON).await;
    assert_eq!(response["batchItemFailures"].as_array().unwrap().len(), 1);
    assert!(worker.turns.asked.into_inner().unwrap().is_empty());
}

#[test]
fn no_deadline_is_none_and_not_the_year_1970() {
    assert_eq!(ends_at(0), None);
    assert_eq!(ends_at(5), Some(Timestamp::from_millis(5)));
}
