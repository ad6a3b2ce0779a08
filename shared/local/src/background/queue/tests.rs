use super::*;
use a2a_lambda::task::{Owner, PushId, Subject, TaskId, TenantId, Timestamp, WriteId};
use a2a_lambda::testing::TestClock;
use futures::FutureExt as _;

const LEASE: Duration = Duration::from_secs(60);

type Turns = LocalQueue<WorkItem>;
type Pushes = LocalQueue<PushItem>;

fn queue<I: Queued>() -> (Arc<TestClock>, LocalQueue<I>) {
    let time = Arc::new(TestClock::without_timers(Timestamp::default()));
    (time.clone(), LocalQueue::new(time, LEASE))
}

fn owner() -> Owner {
    Owner {
        tenant: TenantId::parse("acme").unwrap(),
        subject: Subject::parse("someone").unwrap(),
    }
}

fn item(turn: u32) -> WorkItem {
    WorkItem {
        owner: owner(),
        task: TaskId::parse("mine").unwrap(),
        incarnation: WriteId::made_of(1),
        turn,
        dispatch: 1,
    }
}

/// The next message, if there is one now.
fn now<I: Queued>(queue: &LocalQueue<I>) -> Option<Delivery<I>> {
    queue.receive().now_or_never()
}

async fn filled(turns: &[u32]) -> (Arc<TestClock>, Turns) {
    let (time, queue) = queue();
    let items: Vec<_> = turns.iter().map(|turn| item(*turn).into()).collect();
    assert_eq!(
        WorkQueue::send(&queue, &items).await.unwrap(),
        vec![true; turns.len()]
    );
    (time, queue)
}

#[tokio::test]
async fn messages_are_received_in_the_order_they_were_sent() {
    let (_, queue) = filled(&[1, 2, 3]).await;
    for turn in [1, 2, 3] {
        assert_eq!(now(&queue).unwrap().item, item(turn));
    }
    assert!(now(&queue).is_none());
}

#[tokio::test]
async fn a_received_message_is_delivered_again_unless_it_is_deleted() {
    let (time, queue) = filled(&[1]).await;
    let first = now(&queue).unwrap();
    time.advance(LEASE - Duration::from_millis(1));
    assert!(now(&queue).is_none());
    time.advance(Duration::from_millis(1));
    let second = now(&queue).unwrap();
    assert_eq!(second.item, first.item);
    assert!(second.receipt.delete());
    time.advance(LEASE);
    assert!(now(&queue).is_none() && queue.is_empty());
}

#[tokio::test]
async fn a_receipt_changes_how_long_its_message_is_hidden() {
    let (time, queue) = filled(&[1]).await;
    let delivery = now(&queue).unwrap();
    time.advance(LEASE / 2);
    delivery.receipt.hide(LEASE).await.unwrap();
    time.advance(LEASE / 2);
    assert!(now(&queue).is_none());
    delivery.receipt.hide(Duration::ZERO).await.unwrap();
    assert!(now(&queue).is_some());
}

#[tokio::test]
async fn an_old_receipt_can_neither_delete_nor_hide() {
    let (time, queue) = filled(&[1]).await;
    let overtaken = now(&queue).unwrap();
    time.advance(LEASE);
    let current = now(&queue).unwrap();
    assert!(!overtaken.receipt.delete());
    assert!(overtaken.receipt.hide(LEASE * 9).await.is_err());
    assert_eq!(queue.len(), 1);
    time.advance(LEASE);
    assert!(now(&queue).is_some());
    assert!(!current.receipt.delete());
}

#[tokio::test]
async fn a_receipt_deletes_only_its_own_message() {
    let (_, queue) = filled(&[1, 1]).await;
    let delivery = now(&queue).unwrap();
    assert!(delivery.receipt.delete());
    assert!(!delivery.receipt.delete());
    assert_eq!(now(&queue).unwrap().item, item(1));
}

#[tokio::test]
async fn a_new_message_wakes_a_waiting_receiver() {
    let (_, queue) = queue();
    let waiting = queue.receive();
    tokio::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    WorkQueue::send(&queue, &[item(7).into()]).await.unwrap();
    assert_eq!(waiting.await.item, item(7));
}

#[tokio::test]
async fn a_message_shown_again_wakes_a_waiting_receiver() {
    let (_, queue) = filled(&[1]).await;
    let delivery = now(&queue).unwrap();
    let waiting = queue.receive();
    tokio::pin!(waiting);
    assert!(waiting.as_mut().now_or_never().is_none());
    delivery.receipt.hide(Duration::ZERO).await.unwrap();
    assert_eq!(waiting.await.item, item(1));
}

fn push(tenant: &str, config: &str) -> PushItem {
    let mut owner = owner();
    owner.tenant = TenantId::parse(tenant).unwrap();
    PushItem {
        owner,
        task: TaskId::parse("mine").unwrap(),
        incarnation: WriteId::made_of(1),
        config: PushId::parse(config).unwrap(),
    }
}

async fn rung(items: &[(&str, &str)]) -> (Arc<TestClock>, Pushes) {
    let (time, queue) = queue::<PushItem>();
    let items: Vec<_> = items
        .iter()
        .map(|(tenant, config)| push(tenant, config))
        .collect();
    let taken = queue.send(&items, Duration::ZERO).await.unwrap();
    assert_eq!(taken, vec![true; items.len()]);
    (time, queue)
}

#[tokio::test]
async fn tenants_take_turns_however_many_messages_one_has() {
    let (_time, queue) = rung(&[("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2")]).await;
    let mut order = Vec::new();
    for (tenant, config) in [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2"), ("a", "3")] {
        let delivery = now(&queue).unwrap();
        assert_eq!(delivery.item, push(tenant, config));
        order.push(delivery);
    }
    assert!(now(&queue).is_none());
    // A tenant that was not served yet comes before those that were.
    let late = [push("a", "4"), push("c", "1")];
    queue.send(&late, Duration::ZERO).await.unwrap();
    assert_eq!(now(&queue).unwrap().item, push("c", "1"));
    assert!(order.iter().all(|delivery| delivery.receipt.delete()));
}

#[tokio::test]
async fn a_delayed_push_queue_message_is_hidden_until_its_time() {
    let (time, queue) = rung(&[]).await;
    let wait = Duration::from_secs(900);
    queue.send(&[push("a", "1")], wait).await.unwrap();
    queue.send(&[push("a", "2")], wait / 2).await.unwrap();
    assert!(now(&queue).is_none());
    time.advance(wait / 2);
    let first = now(&queue).unwrap();
    assert_eq!(first.item, push("a", "2"));
    assert!(first.receipt.delete());
    assert!(now(&queue).is_none());
    time.advance(wait / 2);
    assert_eq!(now(&queue).unwrap().item, push("a", "1"));
}
