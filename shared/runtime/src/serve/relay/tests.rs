use super::*;
use crate::store::StoreError;
use crate::store::queue::{PushItem, WorkItem};
use async_trait::async_trait;
use std::sync::Mutex;
use std::time::Duration;

/// A batch of the stream: a new task that asks for a worker, a later commit
/// that still carries an older intent, an item that is no task, a task whose
/// turn cannot be read, a removal, and a task that asks again.
const EVENT: &str = include_str!("event.json");

/// Numbers of the records that matter.
const FIRST: &str = "4421584500000000017450439091";
const LAST: &str = "4421584500000000017450439096";

/// A queue that takes what it is told to.
#[derive(Default)]
struct Takes {
    /// The versions that are refused.
    refused: Vec<u64>,
    /// Whether it answers at all.
    away: bool,
    sent: Mutex<Vec<u64>>,
}

#[async_trait]
impl WorkQueue for Takes {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
        if self.away {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        let taken = |item: &WorkItem| !self.refused.contains(&item.dispatch);
        let versions = items.iter().map(|item| item.dispatch);
        self.sent.lock().unwrap().extend(versions);
        Ok(items.iter().map(taken).collect())
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// The records that are reported, in order.
async fn again(queue: &Takes, event: &str) -> Vec<String> {
    answered(queue, None, serde_json::from_str(event).unwrap()).await
}

async fn answered(
    queue: &dyn WorkQueue,
    pushes: Option<&dyn PushQueue>,
    event: Value,
) -> Vec<String> {
    let relay = Relay { queue, pushes };
    let batch = serde_json::from_value(event).unwrap();
    let response = serde_json::to_value(relay.forward(batch).await).unwrap();
    let failures = response["batchItemFailures"].as_array().unwrap();
    let mut places: Vec<_> = failures
        .iter()
        .map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned())
        .collect();
    places.sort();
    places
}

#[tokio::test]
async fn only_a_commit_that_asks_for_a_worker_itself_is_forwarded() {
    let queue = Takes::default();
    assert_eq!(again(&queue, EVENT).await, [""; 0]);
    assert_eq!(queue.sent.into_inner().unwrap(), [1, 3]);
}

#[tokio::test]
async fn what_the_queue_does_not_take_is_reported_and_nothing_else() {
    let queue = Takes {
        refused: vec![3],
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [LAST]);
}

#[tokio::test]
async fn with_the_queue_away_every_turn_comes_again() {
    let queue = Takes {
        away: true,
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [FIRST, LAST]);
}

#[tokio::test]
async fn a_record_without_a_place_fails_its_batch() {
    let queue = Takes {
        away: true,
        ..Takes::default()
    };
    let event = EVENT
        .replace(FIRST, "")
        .replace("\"SequenceNumber\": \"\",", "");
    assert!(again(&queue, &event).await.contains(&String::new()));
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_skipped_and_the_rest_forwarded() {
    let broken = [
        Value::Null,
        serde_json::json!("no record"),
        serde_json::json!({"eventName": "MODIFY", "dynamodb": {"NewImage": {"PK": {"S": 7}}}}),
        serde_json::json!({"eventName": "MODIFY", "dynamodb": {"NewImage": {"SK": {"?": "META"}}}}),
    ];
    for bad in broken {
        let mut event: Value = serde_json::from_str(EVENT).unwrap();
        event["Records"].as_array_mut().unwrap().insert(0, bad);
        let queue = Takes::default();
        assert_eq!(answered(&queue, None, event).await, [""; 0]);
        assert_eq!(queue.sent.into_inner().unwrap(), [1, 3]);
    }
}

/// What both queues were asked for, in order.
#[derive(Default)]
struct Order(Mutex<Vec<&'static str>>);

#[async_trait]
impl WorkQueue for Order {
    async fn send(&self, items: &[WorkItem]) -> Result<Vec<bool>, StoreError> {
        self.0.lock().unwrap().push("turns");
        Ok(vec![true; items.len()])
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl PushQueue for Order {
    async fn ring(&self, _: &[PushItem], _: Duration) -> Result<Vec<bool>, StoreError> {
        self.0.lock().unwrap().push("deliveries");
        Err(StoreError::Unavailable("away".to_owned()))
    }
}

#[tokio::test]
async fn turns_go_first_and_a_queue_of_deliveries_that_is_away_holds_up_none() {
    let mut event: Value = serde_json::from_str(EVENT).unwrap();
    let heard = &mut event["Records"][0]["dynamodb"]["NewImage"];
    heard["notify"] = serde_json::json!({"N": "1"});
    heard["listeners"] = serde_json::json!({"S": "p-1"});
    let order = Order::default();
    assert_eq!(answered(&order, Some(&order), event).await, [FIRST]);
    assert_eq!(order.0.into_inner().unwrap(), ["turns", "deliveries"]);
}
