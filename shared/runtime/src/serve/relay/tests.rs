use super::*;
use crate::store::StoreError;
use crate::store::queue::{PushItem, WorkMessage};
use a2a_lambda_rows::each_row_async;
use async_trait::async_trait;
use std::sync::Mutex;
use std::time::Duration;

/// A batch of the stream: a new task with an intent, a later commit that still has
/// the older intent, an item that is not a task, a task with an unreadable turn, a
/// removal, and a task with a new intent.
const EVENT: &str = include_str!("event.json");

/// Sequence numbers of the two records that the relay forwards.
const FIRST: &str = "4421584500000000017450439091";
const LAST: &str = "4421584500000000017450439096";

/// A work queue that refuses some items, or fails as a whole.
#[derive(Default)]
struct Takes {
    /// The dispatch versions that it refuses.
    refused: Vec<u64>,
    /// Whether each send fails.
    away: bool,
    sent: Mutex<Vec<u64>>,
}

#[async_trait]
impl WorkQueue for Takes {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        if self.away {
            return Err(StoreError::Unavailable("away".to_owned()));
        }
        let versions: Vec<u64> = messages.iter().map(|it| it.item.dispatch).collect();
        self.sent.lock().unwrap().extend(&versions);
        let taken = |version: &u64| !self.refused.contains(version);
        Ok(versions.iter().map(taken).collect())
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

/// The sequence numbers of the records in the response, sorted.
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
async fn the_relay_forwards_only_commits_with_a_new_intent() {
    let queue = Takes::default();
    assert_eq!(again(&queue, EVENT).await, [""; 0]);
    assert_eq!(queue.sent.into_inner().unwrap(), [1, 3]);
}

#[tokio::test]
async fn the_relay_reports_exactly_the_records_the_queue_refused() {
    let queue = Takes {
        refused: vec![3],
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [LAST]);
}

#[tokio::test]
async fn the_relay_reports_every_turn_when_the_queue_fails() {
    let queue = Takes {
        away: true,
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [FIRST, LAST]);
}

#[tokio::test]
async fn a_record_without_a_sequence_number_fails_its_batch() {
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
async fn the_relay_skips_an_unreadable_record_and_forwards_the_rest() {
    let broken = [
        Value::Null,
        serde_json::json!("no record"),
        serde_json::json!({"eventName": "MODIFY", "dynamodb": {"NewImage": {"PK": {"S": 7}}}}),
        serde_json::json!({"eventName": "MODIFY", "dynamodb": {"NewImage": {"SK": {"?": "META"}}}}),
    ];
    each_row_async(broken, async |bad| {
        let mut event: Value = serde_json::from_str(EVENT).unwrap();
        event["Records"].as_array_mut().unwrap().insert(0, bad);
        let queue = Takes::default();
        assert_eq!(answered(&queue, None, event).await, [""; 0]);
        assert_eq!(queue.sent.into_inner().unwrap(), [1, 3]);
    })
    .await;
}

/// Records in which order the two queues are called.
#[derive(Default)]
struct Order(Mutex<Vec<&'static str>>);

#[async_trait]
impl WorkQueue for Order {
    async fn send(&self, messages: &[WorkMessage]) -> Result<Vec<bool>, StoreError> {
        self.0.lock().unwrap().push("turns");
        Ok(vec![true; messages.len()])
    }

    async fn waiting(&self) -> Result<usize, StoreError> {
        Ok(0)
    }
}

#[async_trait]
impl PushQueue for Order {
    async fn send(&self, _: &[PushItem], _: Duration) -> Result<Vec<bool>, StoreError> {
        self.0.lock().unwrap().push("deliveries");
        Err(StoreError::Unavailable("away".to_owned()))
    }
}

#[tokio::test]
async fn a_failing_push_queue_holds_up_no_turn() {
    let mut event: Value = serde_json::from_str(EVENT).unwrap();
    let heard = &mut event["Records"][0]["dynamodb"]["NewImage"];
    heard["notify"] = serde_json::json!({"N": "1"});
    heard["push_ids"] = serde_json::json!({"S": "p-1"});
    let order = Order::default();
    assert_eq!(answered(&order, Some(&order), event).await, [""; 0]);
    assert_eq!(order.0.into_inner().unwrap(), ["turns", "deliveries"]);
}
