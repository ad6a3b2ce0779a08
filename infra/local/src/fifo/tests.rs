use super::*;
use a2a_lambda::task::{Subject, TenantId};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::sync::atomic::{AtomicI64, Ordering};

const HIDDEN: Duration = Duration::from_secs(60);

/// Time that a test moves. A sleep never ends by itself: who sleeps is asked
/// again.
#[derive(Default)]
struct Time(AtomicI64);

impl Time {
    fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for Time {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if at > self.now() {
                futures::future::pending::<()>().await;
            }
        })
    }
}

fn item(config: &str, seq: u64) -> PushItem {
    PushItem {
        owner: Owner {
            tenant: TenantId::parse("acme").unwrap(),
            subject: Subject::parse("someone").unwrap(),
        },
        task: TaskId::parse("mine").unwrap(),
        config: PushId::parse(config).unwrap(),
        seq,
    }
}

async fn filled(items: &[(&str, u64)]) -> (Arc<Time>, LocalPushQueue) {
    let time = Arc::new(Time::default());
    let queue = LocalPushQueue::new(time.clone(), HIDDEN);
    let items: Vec<_> = items
        .iter()
        .map(|(config, seq)| item(config, *seq))
        .collect();
    let taken = queue.send_pushes(&items).await.unwrap();
    assert_eq!(taken, vec![true; items.len()]);
    (time, queue)
}

/// The next message, if there is one now.
fn next(queue: &LocalPushQueue) -> Option<PushDelivery> {
    queue.receive().now_or_never()
}

#[tokio::test]
async fn messages_of_one_webhook_come_one_at_a_time_and_in_order() {
    let (_time, queue) = filled(&[("a", 1), ("a", 2), ("a", 3)]).await;
    for seq in 1..=3 {
        let delivery = next(&queue).unwrap();
        assert_eq!(delivery.item, item("a", seq));
        assert!(next(&queue).is_none(), "the first is not done with");
        assert!(delivery.receipt.delete());
    }
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_webhook_that_is_busy_holds_up_no_other() {
    let (time, queue) = filled(&[("a", 1), ("a", 2), ("b", 1)]).await;
    let slow = next(&queue).unwrap();
    assert_eq!(slow.item, item("a", 1));
    slow.receipt.hide(Duration::from_secs(900)).await.unwrap();
    let other = next(&queue).unwrap();
    assert_eq!(other.item, item("b", 1));
    assert!(other.receipt.delete());
    assert!(next(&queue).is_none());
    time.pass(Duration::from_secs(899));
    assert!(next(&queue).is_none());
    time.pass(Duration::from_secs(1));
    assert_eq!(next(&queue).unwrap().item, item("a", 1), "in its place");
}

#[tokio::test]
async fn a_message_that_is_not_deleted_comes_again_and_only_its_last_receipt_counts() {
    let (time, queue) = filled(&[("a", 1)]).await;
    let first = next(&queue).unwrap();
    time.pass(HIDDEN);
    let second = next(&queue).unwrap();
    assert_eq!(second.item, first.item);
    assert!(first.receipt.hide(HIDDEN).await.is_err());
    assert!(!first.receipt.delete());
    assert!(second.receipt.delete());
    assert!(queue.is_empty());
}

#[tokio::test]
async fn the_same_item_comes_once_within_five_minutes() {
    let (time, queue) = filled(&[("a", 1), ("a", 1)]).await;
    assert_eq!(queue.len(), 1);
    assert!(next(&queue).unwrap().receipt.delete());
    queue.send_pushes(&[item("a", 1)]).await.unwrap();
    assert!(queue.is_empty());
    time.pass(KNOWN);
    queue.send_pushes(&[item("a", 1)]).await.unwrap();
    assert_eq!(queue.len(), 1);
}

#[tokio::test]
async fn a_message_that_comes_again_and_again_is_given_up() {
    let (time, queue) = filled(&[("a", 1), ("a", 2)]).await;
    for _ in 0..RECEIVES {
        assert_eq!(next(&queue).unwrap().item, item("a", 1));
        time.pass(HIDDEN);
    }
    assert_eq!(next(&queue).unwrap().item, item("a", 2));
}
