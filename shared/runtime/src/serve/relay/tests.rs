use super::*;
use crate::store::StoreError;
use crate::store::memory::MemoryStore;
use crate::store::queue::WorkItem;
use crate::task::{ContextId, Owner, Subject, TaskKey, TenantId, ThreadKey};
use async_trait::async_trait;
use std::sync::Mutex;

/// A batch of the stream: a new task that asks for a worker, a later commit
/// that still carries an older intent, an item that is no task, a task whose
/// turn cannot be read, a removal, and a task that asks again.
const EVENT: &str = include_str!("event.json");

/// Numbers of the records that matter.
const FIRST: &str = "4421584500000000017450439091";
const UNREADABLE: &str = "4421584500000000017450439094";
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
}

/// The records that are reported, in order.
async fn again(queue: &Takes, event: &str) -> Vec<String> {
    let store = MemoryStore::new();
    answered(queue, &store, &store, event).await
}

async fn answered(
    queue: &Takes,
    tasks: &dyn TasksByKey,
    blobs: &dyn Blobs,
    event: &str,
) -> Vec<String> {
    let event = serde_json::from_str(event).unwrap();
    let relay = Relay {
        queue,
        pushes: None,
        tasks,
        blobs,
        clock: &SystemClock,
    };
    let response = serde_json::to_value(relay.forward(&event).await).unwrap();
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
    assert_eq!(again(&queue, EVENT).await, [UNREADABLE]);
    assert_eq!(queue.sent.into_inner().unwrap(), [1, 3]);
}

#[tokio::test]
async fn what_the_queue_does_not_take_is_reported_and_nothing_else() {
    let queue = Takes {
        refused: vec![3],
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [UNREADABLE, LAST]);
}

#[tokio::test]
async fn with_the_queue_away_every_turn_comes_again() {
    let queue = Takes {
        away: true,
        ..Takes::default()
    };
    assert_eq!(again(&queue, EVENT).await, [FIRST, UNREADABLE, LAST]);
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

/// A task that the table has let go, one that somebody has deleted, a child of
/// the first, a thread that has expired, and a task that never had an object.
const REMOVALS: &str = include_str!("removals.json");

/// Objects that cannot be listed.
#[derive(Default)]
struct Away(MemoryStore);

#[async_trait]
impl crate::store::over::OverBlobs for Away {
    fn blobs(&self) -> &dyn Blobs {
        &self.0
    }

    async fn keys(&self, _: &str, _: Option<&str>, _: usize) -> Result<Vec<String>, StoreError> {
        Err(StoreError::Unavailable("away".to_owned()))
    }
}

#[tokio::test]
async fn only_what_the_table_lets_go_by_itself_takes_its_objects_along() {
    let store = MemoryStore::new();
    let task = |id| TaskKey::stored("acme", id).unwrap();
    let [expired, deleted] = [
        task("task-0000000000000000000000000000000a"),
        task("task-0000000000000000000000000000000b"),
    ];
    for task in [&expired, &deleted] {
        let key = format!("{}{:032x}-0-1-1.1", engine::objects_below(task), 1);
        store.put_for(task, &key, "x".into()).await.unwrap();
    }
    let owner = Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("ann").unwrap(),
    };
    let thread = ThreadKey::new(&owner, &ContextId::parse("mine").unwrap());
    let state = format!(
        "{}{:016x}-1-1-state",
        engine::state_objects_below(&thread),
        1
    );
    store
        .put_for_thread(&thread, &state, "x".into())
        .await
        .unwrap();
    let queue = Takes::default();
    let removals = REMOVALS.replace("SUBJECT", &owner.subject.hash());
    assert!(answered(&queue, &store, &store, &removals).await.is_empty());
    let keys = store.keys("", None, 10).await.unwrap();
    let [key] = keys.as_slice() else {
        panic!("{keys:?}");
    };
    assert!(key.starts_with(&engine::objects_below(&deleted)), "{key}");
}

/// Nor does the list fail that is not asked for.
#[tokio::test]
async fn a_removal_that_is_not_carried_out_comes_again() {
    let store = MemoryStore::new();
    let again = answered(&Takes::default(), &store, &Away::default(), REMOVALS).await;
    assert_eq!(again, ["4421584500000000017450439101"]);
}
