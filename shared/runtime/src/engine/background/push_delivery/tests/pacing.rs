//! Tests when a webhook is called again, and for how long a call may take.

use super::super::pacing::LONGEST_WAIT;
use super::*;
use crate::engine::background::redispatch::QUEUED;

#[tokio::test(start_paused = true)]
async fn failing_webhook_is_retried_and_misses_no_event() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    fixture
        .hooks
        .answers
        .lock()
        .unwrap()
        .extend([500, 302, 500, 500, 500]);
    for attempts in 1..=5 {
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        let delivery = fixture.push(&task.id).await.delivery;
        assert_eq!((delivery.attempts, delivery.lease), (attempts, None));
        let longest = Duration::from_secs(1 << (attempts - 1));
        let wait = fixture.last_wait();
        assert!(wait <= longest && wait >= longest * 3 / 4, "{wait:?}");
        let rings_at = fixture.clock.now().plus(wait);
        let slowest = rings_at.minus(Duration::from_secs(10));
        assert!(
            delivery.retry_at <= slowest,
            "the message is not too early by any clock"
        );
        if attempts == 5 {
            // A message that arrives earlier makes no call and sends no message.
            assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        }
        assert_eq!(fixture.calls(), attempts as usize);
        assert_eq!(fixture.line.items.lock().unwrap().len(), attempts as usize);
        tokio::time::advance(wait).await;
    }
    assert_eq!(fixture.got(), [""; 0]);
    assert!(fixture.is_open(&task.id).await);
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.got(), fixture.logged(&task.id).await);
    assert_eq!(fixture.push(&task.id).await.delivery.attempts, 0);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_never_answers_is_given_up() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "done", Some(hook("a"))).await;
    let always = std::iter::repeat_n(503, ATTEMPTS as usize);
    fixture.hooks.answers.lock().unwrap().extend(always);
    for attempt in 1..=ATTEMPTS {
        assert!(fixture.is_open(&task.id).await, "{attempt}");
        assert_eq!(
            fixture.deliver(&task.id, "a").await,
            Ack::Delete,
            "{attempt}"
        );
        tokio::time::advance(LONGEST_WAIT).await;
    }
    assert!(!fixture.is_open(&task.id).await);
    let waits = fixture.line.waits.lock().unwrap();
    assert_eq!(
        waits.len() + 1,
        ATTEMPTS as usize,
        "no message follows the last attempt"
    );
    let waits: Duration = waits.iter().sum();
    assert!(waits > Duration::from_secs(2 * 3600), "{waits:?}");
}

/// The template lets `push` start itself again (`RecursiveLoop`), because its chains end.
#[tokio::test(start_paused = true)]
async fn every_chain_of_push_queue_messages_ends() {
    let fixture = PushFixture::new();
    let down = fixture.say(None, "done", Some(hook("a"))).await;
    let always = std::iter::repeat_n(503, 2 * ATTEMPTS as usize);
    fixture.hooks.answers.lock().unwrap().extend(always);
    assert_eq!(fixture.chain(&down.id).await, ATTEMPTS as usize);
    fixture.hooks.answers.lock().unwrap().clear();
    // The host is left alone for a while.
    tokio::time::advance(LONGEST_WAIT).await;
    *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(4);
    let slow = fixture.say(None, "1200", Some(hook("a"))).await;
    let events = fixture.logged(&slow.id).await.len();
    assert!(events >= 1_200, "{events}");
    assert_eq!(fixture.chain(&slow.id).await, events + 1);
    assert_eq!(fixture.got().len(), events);
}

#[tokio::test(start_paused = true)]
async fn attempts_after_a_failure_are_short_except_every_fourth() {
    let fixture = PushFixture::new();
    *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(3600);
    let task = fixture.say(None, "done", Some(hook("a"))).await;
    for seconds in [10, 3, 3, 10, 3, 3, 3, 10, 3] {
        let began = fixture.clock.now();
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        let took = fixture.clock.now().since(began);
        assert_eq!(took, Duration::from_secs(seconds));
        tokio::time::advance(LONGEST_WAIT).await;
    }
    assert_eq!(fixture.got(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn slow_webhook_gets_the_time_it_needs_and_then_a_pause() {
    let fixture = PushFixture::new();
    *fixture.hooks.takes.lock().unwrap() = Duration::from_secs(5);
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    let events = fixture.logged(&task.id).await;
    for got in 1..=events.len() {
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.got(), events[..got]);
        let wait = fixture.last_wait();
        assert_eq!(wait, Duration::from_secs(50));
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.calls(), got, "the webhook is paused");
        tokio::time::advance(wait).await;
    }
    // The last message finds no new event, and the sweep finds no push config that waits.
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert!(fixture.is_open(&task.id).await);
    assert_eq!(fixture.sweep().await.pushed, 0);
    assert!(!fixture.is_open(&task.id).await);
    // After one failure it still gets a long attempt.
    let task = fixture.say(None, "ask", Some(hook("a"))).await;
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    tokio::time::advance(fixture.last_wait()).await;
    fixture.say(Some(&task.id), "blue", None).await;
    fixture.hooks.answers.lock().unwrap().push_back(500);
    for number in [1, 2] {
        let before = fixture.got().len();
        let began = fixture.clock.now();
        assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
        assert_eq!(fixture.clock.now().since(began), Duration::from_secs(5));
        assert_eq!(fixture.got().len(), before + number - 1);
        tokio::time::advance(LONGEST_WAIT).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sweep_resends_push_messages_after_five_minutes_without_a_write() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "done", Some(hook("a"))).await;
    let untouched = fixture.push(&task.id).await;
    assert_eq!(fixture.sweep().await.pushed, 0);
    tokio::time::advance(QUEUED).await;
    assert_eq!(fixture.sweep().await.pushed, 1);
    assert_eq!(fixture.push(&task.id).await, untouched);
    let rung = fixture.line.items.lock().unwrap().pop().unwrap();
    assert_eq!(rung, fixture.item(&task.id, "a").await);
    // A paused webhook already has a message.
    fixture.hooks.answers.lock().unwrap().push_back(500);
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert_eq!(fixture.sweep().await.pushed, 0);
    tokio::time::advance(QUEUED + Duration::from_secs(1)).await;
    assert_eq!(fixture.sweep().await.pushed, 1);
    assert_eq!(fixture.deliver(&task.id, "a").await, Ack::Delete);
    assert!(!fixture.is_open(&task.id).await);
    tokio::time::advance(QUEUED * 10).await;
    assert_eq!(fixture.sweep().await.pushed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_stops_before_its_invocation_ends() {
    let fixture = PushFixture::new();
    let task = fixture.say(None, "talk", Some(hook("a"))).await;
    let item = fixture.item(&task.id, "a").await;
    let end = fixture.clock.now().plus(Duration::from_secs(19));
    let ack = fixture.dispatcher.deliver(&item, Some(end)).await;
    assert_eq!((ack, fixture.calls()), (Ack::Delete, 0));
    assert_eq!(
        *fixture.line.items.lock().unwrap(),
        std::slice::from_ref(&item)
    );
    assert_eq!(fixture.last_wait(), Duration::ZERO);
    let end = fixture.clock.now().plus(Duration::from_secs(20));
    fixture.dispatcher.deliver(&item, Some(end)).await;
    assert_eq!(fixture.got(), fixture.logged(&task.id).await);
}
