use super::MemoryStore;
use crate::contract::{self, Fault, SampleData, Stores, WatchedTable};
use crate::item::{INCARNATION, STATE, VERSION};
use crate::keys::{Key, META};
use crate::memory::{MemoryBlobs, MemoryTable};
use crate::table::{
    Action, Condition, Item, ItemChange, Query, QueryPage, ReadTable, Statement, Table, Write,
    WriteResult,
};
use a2a_lambda_model::store::{CommitResult, KeyWrite, StoreError, TaskWrite};
use a2a_lambda_model::task::{Change, IdempotencyKey, TaskState};
use async_trait::async_trait;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

fn over(table: Arc<dyn Table>) -> Stores {
    Stores::over(table, Arc::<MemoryBlobs>::default())
}

macro_rules! run {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let stores = over(Arc::<MemoryTable>::default());
            let sample = SampleData::new(1, stringify!($case)).unwrap();
            contract::$case(&stores, &sample).await.unwrap();
        }
    )*};
}
crate::store_contract_cases!(run);

#[tokio::test]
async fn the_suite_passes_twice_on_one_store() {
    let stores = over(Arc::<MemoryTable>::default());
    for run in [1, 2] {
        contract::all(&stores, run).await.unwrap();
    }
}

#[tokio::test]
async fn the_suite_passes_if_a_query_returns_short_pages() {
    let stores = over(Arc::new(MemoryTable::with_pages_of(80_000)));
    contract::all(&stores, 1).await.unwrap();
}

#[tokio::test]
async fn a_write_without_a_reply_is_found_by_its_key_after_later_turns() {
    let table = Arc::<WatchedTable>::default();
    let stores = over(table.clone());
    let sample = SampleData::new(1, "lost").unwrap();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let start = [sample.start()];
    let mut next = sample.next(&task, start).unwrap();
    let key = IdempotencyKey::parse("k").unwrap().hash(&sample.owner);
    next.hold_key(key.clone());
    let content = "c".to_owned();
    let lost = TaskWrite {
        key: Some(KeyWrite { key, content }),
        ..sample.update(&next, &task)
    };
    assert_eq!(
        stores.records.commit(&lost).await.unwrap(),
        CommitResult::Done
    );
    let mut last = next;
    for _ in 0..9 {
        last = sample.committed(&stores, &last, []).await.unwrap();
    }
    assert!(!last.was_written_by(lost.checked_id().unwrap()));
    table.set(Fault::NoReply);
    assert_eq!(
        stores.records.commit(&lost).await.unwrap(),
        CommitResult::Done
    );
}

/// A table in which another writer commits to a task right before its removal.
#[derive(Debug, Default)]
struct Raced(MemoryTable);

#[async_trait]
impl ReadTable for Raced {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.0.get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.0.query(query).await
    }
}

#[async_trait]
impl Table for Raced {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        let removes = |it: &&Statement| it.action == Action::Delete && it.key.sort() == META;
        if let Some(removal) = write.statements.iter().find(removes) {
            let later = [ItemChange::set(VERSION, 99)];
            let commit = Statement::update(removal.key.clone(), later);
            self.0.write(commit.into()).await?;
        }
        self.0.write(write).await
    }
}

#[tokio::test]
async fn a_removal_leaves_a_task_that_has_changed_meanwhile() {
    let stores = over(Arc::<Raced>::default());
    let sample = SampleData::new(1, "raced").unwrap();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    assert!(!stores.records.remove_task(&task).await.unwrap());
    let left = stores.records.head(&sample.owner, &task.id, sample.now);
    assert_eq!(left.await.unwrap().map(|it| it.version), Some(99));
}

mod if_each_write_is_sent_twice {
    use super::*;

    /// They drop a lease. The repeat of such a write finds no holder, and a worker that cannot
    /// tell whether it has lost its lease reads the push config again.
    const DROPPED: [&str; 2] = [
        "only_one_delivery_worker_holds_a_push_lease",
        "only_the_lease_holder_records_a_delivery",
    ];

    macro_rules! run {
        ($($case:ident)*) => {$(
            #[tokio::test]
            async fn $case() {
                if DROPPED.contains(&stringify!($case)) {
                    return;
                }
                let stores = over(Arc::new(WatchedTable::with(Fault::SentTwice)));
                let sample = SampleData::new(1, stringify!($case)).unwrap();
                contract::$case(&stores, &sample).await.unwrap();
            }
        )*};
    }
    crate::store_contract_cases!(run);
}

/// A defect put in front of the table, which the suite has to detect.
#[derive(Clone, Copy, Debug)]
enum Mutant {
    /// A resume leaves the epoch as it is.
    EpochKeptByResume,
    /// A write to an earlier task under the id is accepted for the current one.
    IncarnationIgnored,
}

#[derive(Debug)]
struct Broken(MemoryTable, Mutant);

/// `condition` without what it says of the incarnation.
fn without_incarnation(condition: Condition) -> Condition {
    match condition {
        Condition::All(all) => {
            let names =
                |it: &Condition| matches!(it, Condition::Is(path, ..) if path.name == INCARNATION);
            let rest = all.into_iter().filter(|it| !names(it));
            Condition::All(rest.map(without_incarnation).collect())
        }
        other => other,
    }
}

#[async_trait]
impl ReadTable for Broken {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.0.get(keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.0.query(query).await
    }
}

#[async_trait]
impl Table for Broken {
    async fn write(&self, mut write: Write) -> Result<WriteResult, StoreError> {
        for statement in &mut write.statements {
            let waits = TaskState::InputRequired.as_str().into();
            let old = self.0.get(std::slice::from_ref(&statement.key)).await?;
            let resumes = old.iter().any(|item| item.get(STATE) == Some(&waits));
            match (self.1, &mut statement.action) {
                (Mutant::EpochKeptByResume, Action::Update(changes)) if resumes => {
                    changes.retain(|change| {
                        !matches!(change, ItemChange::Set(path, _) if path.name == "epoch")
                    });
                }
                (Mutant::IncarnationIgnored, Action::Update(_)) => {
                    statement.condition = statement.condition.take().map(without_incarnation);
                }
                _ => {}
            }
        }
        self.0.write(write).await
    }
}

/// The names of the cases that fail with this defect.
async fn found(mutant: Mutant) -> Vec<&'static str> {
    let mut failed = Vec::new();
    macro_rules! each {
        ($($case:ident)*) => {$(
            let stores = over(Arc::new(Broken(MemoryTable::default(), mutant)));
            let sample = SampleData::new(1, stringify!($case)).unwrap();
            let case = AssertUnwindSafe(contract::$case(&stores, &sample)).catch_unwind();
            if !matches!(Box::pin(case).await, Ok(Ok(()))) {
                failed.push(stringify!($case));
            }
        )*};
    }
    each! {
        a_commit_needs_the_version_and_the_incarnation
        a_turn_of_an_earlier_task_changes_nothing_under_a_reused_id
        a_heartbeat_needs_the_running_turn_of_its_task
        a_heartbeat_extends_the_lease_and_nothing_else
        a_repeated_write_is_done_once
    }
    failed
}

#[tokio::test]
async fn the_suite_detects_a_resume_that_keeps_the_epoch() {
    let failed = found(Mutant::EpochKeptByResume).await;
    assert_eq!(failed, ["a_heartbeat_needs_the_running_turn_of_its_task"]);
}

#[tokio::test]
async fn the_suite_detects_a_store_that_ignores_the_incarnation() {
    let failed = found(Mutant::IncarnationIgnored).await;
    let expected = [
        "a_commit_needs_the_version_and_the_incarnation",
        "a_turn_of_an_earlier_task_changes_nothing_under_a_reused_id",
        "a_heartbeat_needs_the_running_turn_of_its_task",
    ];
    assert_eq!(failed, expected);
}

#[tokio::test]
async fn a_lagging_index_shows_only_tasks_that_still_match() {
    let store = MemoryStore::new();
    let sample = SampleData::new(1, "lag").unwrap();
    let task = sample.task().unwrap();
    store.records.commit(&sample.create(&task)).await.unwrap();
    store.table.lag_indexes();
    let hidden = sample.task().unwrap();
    store.records.commit(&sample.create(&hidden)).await.unwrap();
    let canceled = sample.next(&task, [Change::Cancel]).unwrap();
    store
        .records
        .commit(&sample.update(&canceled, &task))
        .await
        .unwrap();

    let mut query = sample.everything();
    let page = store.records.list(&sample.owner, &query).await.unwrap();
    assert_eq!(page.records, [canceled]);
    query.state = Some(task.state());
    let page = store.records.list(&sample.owner, &query).await.unwrap();
    assert!(page.records.is_empty());

    store.table.catch_up_indexes();
    let page = store.records.list(&sample.owner, &query).await.unwrap();
    assert_eq!(page.records, [hidden]);
}
