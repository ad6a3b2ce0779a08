//! Contexts in a table, over days of a clock that the tests set: the items the sweep finds
//! and removes, and the items it leaves.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{Clock as _, Engine, Policy, Services};
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::{CommitResult, ExpiringThread, ThreadQuery};
use a2a_lambda::task::{
    A2aError, Change, ContextId, Generation, Message, Metadata, Part, PartContent, SendCommand,
    SendMode, SendResponse, Task, TaskId, TaskRecord, Timestamp,
};
use a2a_lambda::testing::TestClock;
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_lambda_tests::tester::{self, Gate};
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// When the clock of a test begins: in the year 2100, so that no native TTL deletion
/// interferes.
const BEGIN: Timestamp = Timestamp::from_millis(4_102_444_800_000);

struct Stage {
    emulator: Emulator,
    store: Records,
    engine: Engine,
    clock: Arc<TestClock>,
    caller: Caller,
}

impl Stage {
    async fn new(name: &str) -> Self {
        Self::with(name, Policy::default()).await
    }

    async fn with(name: &str, policy: Policy) -> Self {
        // A sweep covers the whole table, so the test needs its own.
        let emulator = Emulator::alone().await.unwrap();
        let store = emulator.records.clone();
        let clock = Arc::new(TestClock::without_timers(BEGIN));
        let services = Services {
            clock: clock.clone(),
            ..Services::new(store.clone(), Arc::new(emulator.blobs.clone()))
        };
        let agent = Arc::new(tester::agent(Gate::default()).unwrap());
        let caller = Caller {
            owner: SampleData::new(run(), name).unwrap().owner,
            tier: "default".to_owned(),
            scopes: BTreeSet::new(),
        };
        Self {
            engine: Engine::new(agent, services, policy),
            emulator,
            store,
            clock,
            caller,
        }
    }

    /// Sends a message to the skill that keeps values for its context.
    async fn say(&self, text: &str, context: Option<&ContextId>) -> Result<Task, A2aError> {
        let mut message = Message::from_user("m-1", vec![Part::text(text)]);
        message.context_id = context.cloned();
        let skill = ("a2a-lambda/skillId".to_owned(), "notes".into());
        message.metadata = Metadata::from_iter([skill]);
        let command = SendCommand {
            message,
            client_task_id: None,
            idempotency_key: None,
            mode: SendMode::Blocking,
            history_length: 10,
            accepted_output_modes: Vec::new(),
            push: None,
            metadata: Metadata::new(),
            generation: Generation::V10,
        };
        match Box::pin(
            self.engine
                .send(&self.caller, command, CallBudget::default()),
        )
        .await
        {
            Ok(SendResponse::Task(task)) => Ok(*task),
            Ok(SendResponse::Message(message)) => panic!("{message:?}"),
            Err(error) => Err(error.a2a_error),
        }
    }

    async fn value(&self, key: &str, context: &ContextId) -> String {
        let task = self.say(&format!("get {key}"), Some(context)).await;
        let artifacts = task.unwrap().artifacts.unwrap();
        match &artifacts[0].parts[0].content {
            PartContent::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Runs a sweep. Returns how many threads it looked at, and how many states and deleted
    /// threads it removed.
    async fn sweep(&self) -> (usize, usize, usize) {
        let swept = self.engine.sweeper.sweep_threads().await.unwrap();
        (swept.looked_at, swept.states_cleaned, swept.threads_removed)
    }

    /// The sort keys of the items of a context, with their `ttl` in seconds.
    async fn items(&self, context: &ContextId) -> HashMap<String, i64> {
        let owner = &self.caller.owner;
        let partition = format!("T#{}#C#{}#{context}", owner.tenant, owner.subject.hash());
        let query = self.emulator.clients.dynamodb.query().table_name(TABLE);
        let found = query
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(partition))
            .consistent_read(true)
            .send()
            .await
            .unwrap();
        let items = found.items.unwrap_or_default();
        let named = items.into_iter().map(|item| {
            let ttl = item["ttl"].as_n().unwrap().parse().unwrap();
            (item["SK"].as_s().unwrap().clone(), ttl)
        });
        named.collect()
    }
}

fn own(count: usize) -> Vec<ContextId> {
    (0..count)
        .map(|n| ContextId::parse(format!("mine:{n}")).unwrap())
        .collect()
}

#[tokio::test]
async fn a_sweep_keeps_living_threads_and_handles_each_expiry_once() {
    let stage = Stage::new("sweep").await;
    let contexts = own(12);
    for context in &contexts {
        stage.say("set k v", Some(context)).await.unwrap();
    }
    stage.clock.advance(MINUTE * 50);
    for context in &contexts {
        stage.say("show", Some(context)).await.unwrap();
    }
    // The expiry recorded at the first message has passed; the refreshed one has not.
    stage.clock.advance(MINUTE * 10);
    assert_eq!(stage.sweep().await, (12, 0, 0));
    assert_eq!(
        stage.sweep().await,
        (0, 0, 0),
        "the sweep recorded the new expiry"
    );
    for context in &contexts {
        assert_eq!(stage.value("k", context).await, "v");
    }
    stage.clock.advance(HOUR * 23);
    for context in &contexts {
        stage.say("set k w", Some(context)).await.unwrap();
    }
    stage.clock.advance(HOUR / 2);
    assert_eq!(stage.sweep().await, (0, 0, 0), "the threads are alive");
    for context in &contexts {
        assert_eq!(stage.value("k", context).await, "w");
    }

    stage.clock.advance(DAY);
    assert_eq!(stage.sweep().await, (12, 12, 0));
    assert_eq!(stage.sweep().await, (0, 0, 0), "a sweep keeps tombstones");
    for context in &contexts {
        let late = stage.say("show", Some(context)).await.unwrap_err();
        assert_eq!(late, A2aError::ContextExpired);
        let items = stage.items(context).await;
        let thread = items.keys().filter(|name| !name.starts_with("TASK#"));
        assert_eq!(thread.collect::<Vec<_>>(), ["META"]);
        // The tombstone is kept for seven days, and as long as a task of the context can be open.
        let gone_at = items["META"] * 1000;
        let now = stage.clock.now().as_millis();
        let left = Duration::from_millis(u64::try_from(gone_at - now).unwrap());
        assert!(left > DAY * 59 && left <= DAY * 60, "{left:?}");
    }
}

#[tokio::test]
async fn a_state_that_is_used_for_days_is_never_due_for_removal() {
    let stage = Stage::new("used").await;
    for context in [None, Some(own(1).remove(0))] {
        let first = stage.say("set k v", context.as_ref()).await.unwrap();
        let context = first.context_id;
        for _ in 0..32 {
            stage.clock.advance(MINUTE * 50);
            assert_eq!(stage.value("k", &context).await, "v");
            stage.sweep().await;
            let now = stage.clock.now().as_millis();
            let items = stage.items(&context).await;
            assert!(items["STATE"] * 1000 > now + 3_600_000, "{items:?}");
            assert!(items["META"] * 1000 > now + 23 * 3_600_000, "{items:?}");
        }
    }
}

#[tokio::test]
async fn native_ttl_removes_no_state_of_an_active_context() {
    let policy = Policy {
        state_ttl: DAY,
        ..Policy::default()
    };
    let stage = Stage::with("outlived", policy).await;
    let context = own(1).remove(0);
    stage.say("set k v", Some(&context)).await.unwrap();
    // No sweep runs here: only the send can extend the `ttl` of the state.
    for _ in 0..25 {
        stage.clock.advance(HOUR);
        assert_eq!(stage.value("k", &context).await, "v");
        let now = stage.clock.now().as_millis();
        let items = stage.items(&context).await;
        assert!(items["STATE"] * 1000 > now, "{items:?}");
    }
}

#[tokio::test]
async fn a_sweep_with_outdated_index_data_changes_nothing() {
    let stage = Stage::new("race").await;
    let context = own(1).remove(0);
    stage.say("set k v", Some(&context)).await.unwrap();
    let owner = &stage.caller.owner;
    // The sweep has read an outdated index.
    let sweep = stage.store.sweep();
    let removed = sweep.remove_state(owner, &context, stage.clock.now());
    let _whether = removed.await.unwrap();
    assert_eq!(stage.value("k", &context).await, "v");

    let thread = stage.store.load_thread_head(owner, &context).await;
    let thread = thread.unwrap().unwrap();
    let deleted = stage
        .engine
        .tasks
        .delete_context(&stage.caller, &context)
        .await;
    deleted.unwrap();
    let left = stage.items(&context).await;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["META"], "the tombstone");
    stage.store.sweep().note_expiry(&thread).await.unwrap();
    assert_eq!(stage.items(&context).await, left);
    stage.clock.advance(MINUTE * 20);
    stage.sweep().await;
    assert_eq!(stage.items(&context).await, HashMap::new());
}

#[tokio::test]
async fn a_deleted_context_id_is_refused_for_20_minutes_then_new() {
    let stage = Stage::new("anew").await;
    let context = own(1).remove(0);
    let large = noise(1, 300 * 1024);
    for round in 0..3 {
        // State in an object, and state in an item.
        let value = if round == 1 { "v" } else { large.as_str() };
        let order = format!("set k {value}");
        let task = stage.say(&order, Some(&context)).await.unwrap();
        let thread = stage.store.load_thread_head(&stage.caller.owner, &context);
        let thread = thread.await.unwrap().unwrap();
        assert!(!thread.is_cleared(), "{round}");
        assert!(task.status.timestamp >= thread.created_at);
        let deleted = stage
            .engine
            .tasks
            .delete_context(&stage.caller, &context)
            .await;
        deleted.unwrap();
        let late = stage.say("show", Some(&context)).await.unwrap_err();
        assert_eq!(late, A2aError::ContextExpired);
        stage.clock.advance(MINUTE * 20 - Duration::from_millis(1));
        assert_eq!(stage.sweep().await, (0, 0, 0));
        stage.clock.advance(Duration::from_millis(1));
        assert_eq!(stage.sweep().await, (1, 0, 1));
        assert_eq!(stage.items(&context).await, HashMap::new());
    }
    assert_eq!(stage.value("k", &context).await, "nothing");
}

#[tokio::test]
async fn every_task_but_the_first_of_a_server_made_context_has_a_pointer() {
    let stage = Stage::new("pointers").await;
    let first = stage.say("show", None).await.unwrap();
    assert_eq!(stage.items(&first.context_id).await, HashMap::new());
    for context in [first.context_id, own(1).remove(0)] {
        for pointers in 1..=3 {
            stage.clock.advance(MINUTE);
            stage.say("show", Some(&context)).await.unwrap();
            let items = stage.items(&context).await;
            let of: Vec<_> = items
                .iter()
                .filter(|it| it.0.starts_with("TASK#"))
                .collect();
            assert_eq!(of.len(), pointers);
            // Twice the lifetime of a task.
            let now = stage.clock.now().as_millis() / 1000;
            let longest = of.iter().map(|(_, ttl)| **ttl - now).max();
            assert_eq!(longest, Some(60 * 24 * 3600));
        }
    }
}

#[tokio::test]
async fn a_pointer_left_by_a_crash_shows_nothing_and_is_deleted_with_its_context() {
    let stage = Stage::new("crash").await;
    let context = own(1).remove(0);
    let task = stage.say("set k v", Some(&context)).await.unwrap();
    let owner = &stage.caller.owner;
    let partition = format!("T#{}#C#{}#{context}", owner.tenant, owner.subject.hash());
    let now = stage.clock.now().as_millis();
    let of = |id: &str, incarnation: &str| format!("TASK#{now:013}#{id}#{incarnation}");
    // A pointer to a task that was never stored, and one to another incarnation.
    let none = of(
        "task-of-a-write-that-never-came",
        "00000000000000000000000000000001",
    );
    let other = of(task.id.as_str(), "00000000000000000000000000000002");
    for sort in [none, other] {
        let put = stage.emulator.clients.dynamodb.put_item().table_name(TABLE);
        let put = put
            .item("PK", AttributeValue::S(partition.clone()))
            .item("SK", AttributeValue::S(sort))
            .item("ttl", AttributeValue::N("9999999999".to_owned()));
        put.send().await.unwrap();
    }
    let found = stage.store.tasks_in(owner, &context, None, None, 10).await;
    let found: Vec<_> = found
        .unwrap()
        .0
        .into_iter()
        .map(|it| it.id.clone())
        .collect();
    assert_eq!(found, [task.id]);
    assert_eq!(stage.value("k", &context).await, "v");
    let deleted = stage
        .engine
        .tasks
        .delete_context(&stage.caller, &context)
        .await;
    deleted.unwrap();
    stage.clock.advance(MINUTE * 20);
    assert_eq!(stage.sweep().await, (1, 0, 1));
    assert_eq!(stage.items(&context).await, HashMap::new());
}

#[tokio::test]
async fn a_pointer_lives_as_long_as_its_task() {
    let stage = Stage::new("renewed").await;
    let sample = SampleData::new(run(), "renewed").unwrap();
    let (owner, context) = (&stage.caller.owner, own(1).remove(0));
    let incarnation = sample.write_id();
    let task = TaskRecord::create(
        TaskId::made_of(sample.number()),
        owner.clone(),
        context.clone(),
        incarnation.clone(),
        Generation::V10,
        Metadata::new(),
        sample.now,
    );
    let message = Message::from_user("m-1", vec![Part::text("hi")]);
    let opening = [Change::Accept { message }, sample.start()];
    let mut record = task
        .next(opening, incarnation, sample.now, sample.expiry())
        .unwrap();
    let mut write = sample.create(&record);
    let mut ends = sample.expiry();
    for n in 1..=6 {
        assert_eq!(
            stage.store.commit(&write).await.unwrap(),
            CommitResult::Done
        );
        let items = stage.items(&context).await;
        let pointer = items.iter().find(|it| it.0.starts_with("TASK#")).unwrap();
        assert!(pointer.1 * 1000 >= ends.as_millis(), "{n}");
        // A task of this sample lives one hour.
        let now = sample.now.plus(MINUTE * 50 * n);
        let update = Change::Update {
            message: None,
            metadata: Metadata::new(),
        };
        ends = now.plus(HOUR);
        let next = record.next([update], sample.write_id(), now, ends).unwrap();
        write = sample.update(&next, &record);
        record = next;
    }
}

#[tokio::test]
async fn pages_of_expiring_threads_contain_each_thread_once() {
    let stage = Stage::new("pages").await;
    let contexts = own(20);
    for context in &contexts {
        stage.say("set k v", Some(context)).await.unwrap();
    }
    stage.clock.advance(DAY);
    each_row_async([1, 3, 50], async |size| {
        let mut found = Vec::new();
        for shard in 0..stage.store.sweep().expiry_shards() {
            let mut after = None;
            for _ in 0..100 {
                let now = stage.clock.now();
                let sweep = stage.store.sweep();
                let page = sweep.expiring_threads(shard, now, after, size);
                let (threads, next) = page.await.unwrap();
                assert!(threads.len() <= size);
                let mine = |it: &ExpiringThread| it.owner == stage.caller.owner;
                found.extend(threads.into_iter().filter(mine));
                after = next;
                if after.is_none() {
                    break;
                }
            }
        }
        assert_eq!(found.len(), 20, "pages of {size}");
        let distinct: BTreeSet<_> = found.iter().map(|it| (&it.context_id, it.what)).collect();
        assert_eq!(distinct.len(), 20, "pages of {size}");
    })
    .await;
}

#[tokio::test]
async fn a_context_list_is_complete_and_in_order() {
    let stage = Stage::new("order").await;
    let owner = &stage.caller.owner;
    let query = |after, limit, now| ThreadQuery {
        after,
        limit,
        ttl: DAY,
        now,
    };
    let mut expected = Vec::new();
    for n in 0..12 {
        stage.clock.advance(Duration::from_secs(1));
        let own = ContextId::parse(format!("mine:{n}")).unwrap();
        let own = (n % 3 == 0).then_some(&own);
        expected.push(stage.say("show", own).await.unwrap().context_id);
    }
    expected.reverse();
    each_row_async([2, 5, 50], async |size| {
        let (mut joined, mut after) = (Vec::new(), None);
        for _ in 0..20 {
            let query = query(after, size, stage.clock.now());
            let page = stage.store.list_threads(owner, &query).await.unwrap();
            joined.extend(page.threads.into_iter().map(|thread| thread.context_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(joined, expected, "pages of {size}");
    })
    .await;
}

#[tokio::test]
async fn expired_contexts_take_no_space_on_list_pages() {
    let stage = Stage::new("over").await;
    let owner = &stage.caller.owner;
    for _ in 0..25 {
        stage.say("show", None).await.unwrap();
    }
    let stage = &stage;
    let list = |limit| {
        let query = ThreadQuery {
            after: None,
            limit,
            ttl: DAY,
            now: stage.clock.now(),
        };
        async move { stage.store.list_threads(owner, &query).await.unwrap() }
    };
    stage.clock.advance(DAY - MINUTE);
    let page = list(10).await;
    assert_eq!(page.threads.len(), 10);
    assert!(page.next.is_some());
    // The tasks of expired contexts remain readable for 30 days.
    stage.clock.advance(MINUTE);
    let last = stage.say("show", None).await.unwrap().context_id;
    let page = list(10).await;
    let contexts: Vec<_> = page.threads.iter().map(|it| &it.context_id).collect();
    assert_eq!(contexts, [&last]);
    assert_eq!(page.next, None);
}
