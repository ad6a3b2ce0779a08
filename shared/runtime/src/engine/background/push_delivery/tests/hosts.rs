//! Tests how often one host is called, whichever task or push config it is for.

use super::*;
use crate::auth::Caller;
use crate::task::{Owner, TenantId};
use futures::future::join_all;

/// Messages, and when they arrive.
type Due = Vec<(Timestamp, PushItem)>;

impl PushFixture {
    fn due(&self, items: Vec<PushItem>) -> Due {
        let items = items.into_iter();
        items.map(|item| (self.clock.now(), item)).collect()
    }

    /// Delivers each message at its time, those of one time together, for `time`. Returns the
    /// messages that are left.
    async fn run(&self, mut due: Due, time: Duration) -> Due {
        let end = self.clock.now().plus(time);
        loop {
            let first = due.iter().map(|(at, _)| *at).min().unwrap_or(end).min(end);
            tokio::time::advance(first.since(self.clock.now())).await;
            let now = self.clock.now();
            if now >= end {
                return due;
            }
            let (ready, later): (Vec<_>, _) = due.into_iter().partition(|(at, _)| *at <= now);
            let deliveries = ready.iter().map(|(_, item)| async {
                let end = self.clock.now().plus(Duration::from_secs(60));
                let ack = self.dispatcher.deliver(item, Some(end)).await;
                assert_eq!(ack, Ack::Delete);
            });
            join_all(deliveries).await;
            let items = std::mem::take(&mut *self.line.items.lock().unwrap());
            let waits = std::mem::take(&mut *self.line.waits.lock().unwrap());
            let now = self.clock.now();
            let next = items.into_iter().zip(waits);
            due = next.map(|(item, wait)| (now.plus(wait), item)).collect();
            due.extend(later);
        }
    }

    /// A task with news for ten push configs of one host, and their messages.
    async fn ten_configs(&self) -> (TaskId, Vec<PushItem>) {
        let ids: Vec<String> = (0..10).map(|number| format!("hook-{number}")).collect();
        let task = self.say(None, "ask", Some(hook(&ids[0]))).await.id;
        for id in &ids[1..] {
            self.create(&task, hook(id)).await.unwrap();
        }
        self.say(Some(&task), "blue", None).await;
        let mut items = Vec::new();
        for id in &ids {
            items.push(self.item(&task, id).await);
        }
        (task, items)
    }

    fn queued_items(&self) -> Vec<PushItem> {
        std::mem::take(&mut *self.line.items.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn ten_configs_at_a_refusing_host_share_its_pauses() {
    let fixture = PushFixture::new();
    let (task, items) = fixture.ten_configs().await;
    let always = std::iter::repeat_n(500, 10_000);
    fixture.hooks.answers.lock().unwrap().extend(always);
    let seconds = Duration::from_secs;
    let due = fixture.run(fixture.due(items), seconds(10)).await;
    let early = fixture.calls();
    let due = fixture.run(due, seconds(50)).await;
    // All ten at once, before the first has failed; then one at a time, with growing pauses.
    let calls = (early, fixture.calls());
    assert!(calls.0 <= 14 && calls.1 <= 17, "{calls:?} in 10 s and 60 s");
    // The host comes back: each config gets its events.
    fixture.hooks.answers.lock().unwrap().clear();
    fixture.run(due, seconds(3600)).await;
    let got = fixture.hooks.got.lock().unwrap().len();
    let events = fixture.logged(&task).await.len();
    assert!(got >= 10 && got >= events, "{got}");
    assert!(!fixture.is_open(&task).await, "nothing is undelivered");
}

impl PushFixture {
    /// The message of a task of another tenant, whose webhook is at the same host.
    async fn item_of_other(&self) -> PushItem {
        let other = Owner {
            tenant: TenantId::parse("other").unwrap(),
            ..owner()
        };
        let mut command = send_command("done", SendMode::Blocking);
        command.push = Some(hook("a"));
        let caller = Caller::behind(&other, None);
        let task = sent_task(&self.engine, &caller, command).await;
        let record = self.store.records.load(&other, &task.id, self.clock.now());
        PushItem {
            incarnation: record.await.unwrap().unwrap().incarnation.clone(),
            owner: other,
            task: task.id,
            config: PushId::parse("a").unwrap(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_refuses_one_tenant_gets_the_requests_of_another() {
    let fixture = PushFixture::new();
    let item = fixture.item_of_other().await;
    let mine = fixture.say(None, "done", Some(hook("a"))).await;
    fixture.hooks.answers.lock().unwrap().push_back(500);
    assert_eq!(fixture.deliver(&mine.id, "a").await, Ack::Delete);
    assert_eq!(fixture.calls(), 1);
    assert_eq!(fixture.dispatcher.deliver(&item, None).await, Ack::Delete);
    assert!(fixture.calls() > 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_connection_waits_a_minute_for_all_tenants() {
    let fixture = PushFixture::new();
    let item = fixture.item_of_other().await;
    let mine = fixture.say(None, "done", Some(hook("a"))).await;
    fixture.hooks.is_closed.store(true, Ordering::Relaxed);
    assert_eq!(fixture.deliver(&mine.id, "a").await, Ack::Delete);
    fixture.hooks.is_closed.store(false, Ordering::Relaxed);
    fixture.queued_items();
    assert_eq!(fixture.dispatcher.deliver(&item, None).await, Ack::Delete);
    assert_eq!(fixture.calls(), 1, "the other tenant does not try");
    let pushes = fixture.store.records.pushes(&item.owner, &item.task);
    let push = pushes.await.unwrap().remove(0);
    assert_eq!(push.delivery.attempts, 0, "it is no attempt");
    let wait = fixture.last_wait();
    assert!(wait <= Duration::from_secs(60), "{wait:?}");
    // Late, and not dropped.
    tokio::time::advance(wait).await;
    assert_eq!(fixture.queued_items(), std::slice::from_ref(&item));
    assert_eq!(fixture.dispatcher.deliver(&item, None).await, Ack::Delete);
    let got = fixture.hooks.got.lock().unwrap();
    assert!(got.iter().any(|delivery| delivery.owner == item.owner));
}

#[tokio::test(start_paused = true)]
async fn a_host_gets_at_most_1200_requests_a_minute_of_a_tenant() {
    let fixture = PushFixture::new();
    let mut items = Vec::new();
    let mut logs = Vec::new();
    for _ in 0..2 {
        let task = fixture.say(None, "1500", Some(hook("a"))).await;
        items.push(fixture.item(&task.id, "a").await);
        logs.push((task.id.clone(), fixture.logged(&task.id).await));
    }
    let due = fixture.due(items);
    fixture.run(due, Duration::from_secs(600)).await;
    let got = fixture.hooks.got.lock().unwrap();
    let times: Vec<Timestamp> = got.iter().map(|delivery| delivery.at).collect();
    let most = times.iter().map(|from| {
        let to = from.plus(Duration::from_secs(60));
        times.iter().filter(|at| *from <= **at && **at < to).count()
    });
    let most = most.max().unwrap();
    assert!((600..=1_200).contains(&most), "{most} in a minute");
    for (task, log) in logs {
        let of_task = got.iter().filter(|delivery| delivery.task == task);
        let ids: Vec<String> = of_task.map(|delivery| delivery.id.to_string()).collect();
        assert_eq!(ids, log, "each once, in order");
    }
}
