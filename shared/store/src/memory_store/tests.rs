use super::MemoryStore;
use crate::contract::{Fault, WatchedTable};
use crate::memory::MemoryBlobs;
use crate::records::Records;
use a2a_lambda_model::store::contract::{self, Stores, World};
use a2a_lambda_model::store::queue::SweepObjects as _;
use a2a_lambda_model::store::wrap::WrapTasks;
use a2a_lambda_model::store::{
    Committed, Expect, ReadTasks as _, StoreError, TaskWrite, WriteTasks,
};
use a2a_lambda_model::task::{Change, TaskRecord, Timestamp};
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

macro_rules! run {
    ($($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            let store = MemoryStore::new();
            let stores = Stores { tasks: &store, sweep: &store, threads: &store, blobs: &store, pushes: Some(&store) };
            let world = World::new(1, stringify!($case)).unwrap();
            contract::$case(&stores, &world).await.unwrap();
        }
    )*};
}
a2a_lambda_model::store_contract_cases!(run);

#[tokio::test]
async fn the_suite_passes_twice_on_one_store() {
    let store = MemoryStore::new();
    let stores = Stores {
        tasks: &store,
        sweep: &store,
        threads: &store,
        blobs: &store,
        pushes: Some(&store),
    };
    for run in [1, 2] {
        contract::all(&stores, run).await.unwrap();
    }
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
                let table = Arc::new(WatchedTable::with(Fault::SentTwice));
                let blobs = Arc::<MemoryBlobs>::default();
                let records = Records::new(table).with_blobs(blobs.clone());
                let stores = Stores {
                    tasks: &records,
                    sweep: &records,
                    threads: &records,
                    blobs: &*blobs,
                    pushes: Some(&records),
                };
                let world = World::new(1, stringify!($case)).unwrap();
                contract::$case(&stores, &world).await.unwrap();
            }
        )*};
    }
    a2a_lambda_model::store_contract_cases!(run);
}

/// A defect put in front of the store, which the suite has to detect.
#[derive(Clone, Copy, Debug)]
enum Mutant {
    /// A resume leaves the epoch as it is.
    EpochKeptByResume,
    /// A write to an earlier task under the id is accepted for the current one.
    IncarnationIgnored,
}

struct Broken(MemoryStore, Mutant);

impl Broken {
    /// `record` with the incarnation of the task now stored under its id.
    async fn disguised(&self, record: &TaskRecord) -> TaskRecord {
        let stored = self.0.records.load_by_key(&record.key()).await.unwrap();
        let mut record = record.clone();
        if let Some(stored) = stored {
            *record.fields().incarnation = stored.incarnation().clone();
        }
        record
    }
}

#[async_trait::async_trait]
impl WrapTasks for Broken {
    fn tasks(&self) -> &dyn WriteTasks {
        &self.0
    }

    async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
        let mut write = write.clone();
        let stored = self.0.records.load_by_key(&write.record.key()).await?;
        match (self.1, &mut write.expect, stored) {
            (Mutant::EpochKeptByResume, _, Some(stored)) if write.record.turn() > stored.turn() => {
                *write.record.fields().epoch = stored.epoch();
            }
            (Mutant::IncarnationIgnored, Expect::Version { incarnation, .. }, Some(stored)) => {
                *incarnation = stored.incarnation().clone();
            }
            _ => {}
        }
        self.0.records.commit(&write).await
    }

    async fn heartbeat(&self, record: &TaskRecord, until: Timestamp) -> Result<bool, StoreError> {
        match self.1 {
            Mutant::EpochKeptByResume => self.0.records.heartbeat(record, until).await,
            Mutant::IncarnationIgnored => {
                let disguised = self.disguised(record).await;
                self.0.records.heartbeat(&disguised, until).await
            }
        }
    }
}

/// The names of the cases that fail with this defect.
async fn found(mutant: Mutant) -> Vec<&'static str> {
    let mut failed = Vec::new();
    macro_rules! each {
        ($($case:ident)*) => {$(
            let store = Broken(MemoryStore::new(), mutant);
            let behind = &store.0;
            let stores = Stores {
                tasks: &store, sweep: behind, threads: behind, blobs: behind, pushes: Some(behind),
            };
            let world = World::new(1, stringify!($case)).unwrap();
            let case = AssertUnwindSafe(contract::$case(&stores, &world)).catch_unwind();
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
    let world = World::new(1, "lag").unwrap();
    let task = world.task().unwrap();
    store.records.commit(&world.create(&task)).await.unwrap();
    store.lag_index();
    let hidden = world.task().unwrap();
    store.records.commit(&world.create(&hidden)).await.unwrap();
    let canceled = world.next(&task, [Change::Cancel]).unwrap();
    store
        .records
        .commit(&world.update(&canceled, &task))
        .await
        .unwrap();

    let mut query = world.everything();
    let page = store.records.list(&world.owner, &query).await.unwrap();
    assert_eq!(page.records, [canceled]);
    query.state = Some(task.state());
    let page = store.records.list(&world.owner, &query).await.unwrap();
    assert!(page.records.is_empty());

    store.catch_up_index();
    let page = store.records.list(&world.owner, &query).await.unwrap();
    assert_eq!(page.records, [hidden]);
}
