//! The fixtures of a case: stores, owners, ids, times, records.

use crate::records::{Deliveries, Records, Sweep};
use crate::table::Table;
use a2a_lambda_model::store::{
    Blobs, CommitResult, Expect, RecordQuery, StoreError, TaskWrite, ThreadRecord, ThreadState,
    ThreadStatus, ThreadWrite,
};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{
    Change, ContextId, Generation, IdError, Message, Metadata, Owner, Part, Subject, TaskId,
    TaskRecord, TenantId, Timestamp, TransitionError, WriteId,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Members that a later version of this program could have added to a record.
fn later() -> Metadata {
    let mut later = Metadata::new();
    later.insert("later".to_owned(), serde_json::json!({"of": [1, null]}));
    later
}

/// What is stored in the table under test.
#[derive(Clone)]
#[expect(
    missing_debug_implementations,
    reason = "a store of bytes does not have to implement it"
)]
pub struct Stores {
    /// Tasks, threads and push configs.
    pub records: Records,
    /// The progress of deliveries of the same push configs.
    pub deliveries: Deliveries,
    /// What a sweep looks for.
    pub sweep: Sweep,
    /// Bytes.
    pub blobs: Arc<dyn Blobs>,
}

impl Stores {
    /// The records in `table`, with large values in `blobs`.
    #[must_use]
    pub fn over(table: Arc<dyn Table>, blobs: Arc<dyn Blobs>) -> Self {
        let records = Records::new(table).with_blobs(blobs.clone());
        Self {
            deliveries: records.deliveries(),
            sweep: records.sweep(),
            records,
            blobs,
        }
    }
}

/// Why a case could not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// A call to the store failed that has to succeed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The case itself is wrong.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// The case itself is wrong.
    #[error(transparent)]
    Id(#[from] IdError),
}

/// The owners, times and records of one case.
#[derive(Debug)]
pub struct SampleData {
    run: u128,
    /// The caller.
    pub owner: Owner,
    /// Another subject of the same tenant.
    pub colleague: Owner,
    /// The same subject in another tenant.
    pub stranger: Owner,
    /// The time of the case.
    pub now: Timestamp,
    made: AtomicU64,
}

impl SampleData {
    /// The sample of `case`; `run` separates the runs against one store.
    ///
    /// # Errors
    /// [`Broken::Id`], never.
    pub fn new(run: u128, case: &str) -> Result<Self, Broken> {
        let ann = Subject::parse("ann")?;
        let mark = Subject::parse(format!("{case} {run}"))?.hash();
        let tenant = TenantId::parse(format!("contract-{mark}"))?;
        Ok(Self {
            run: run ^ u128::from_str_radix(&mark, 16).unwrap_or_default(),
            owner: Owner {
                tenant: tenant.clone(),
                subject: ann.clone(),
            },
            colleague: Owner {
                tenant,
                subject: Subject::parse("bob")?,
            },
            stranger: Owner {
                tenant: TenantId::parse(format!("contract-{mark}-b"))?,
                subject: ann,
            },
            now: Timestamp::from_millis(4_102_444_800_000),
            made: AtomicU64::new(0),
        })
    }

    /// A number that this sample has not returned before.
    pub fn number(&self) -> u128 {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        self.run.wrapping_add(u128::from(made))
    }

    /// A new write id.
    pub fn write_id(&self) -> WriteId {
        WriteId::made_of(self.number())
    }

    /// The time `millis` after now; before now if negative.
    #[must_use]
    pub const fn at(&self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.now.as_millis() + millis)
    }

    /// A task of `owner` that is not stored: version 1, submitted.
    ///
    /// # Errors
    /// [`Broken::Transition`], never.
    pub fn new_task(&self, owner: &Owner, id: TaskId) -> Result<TaskRecord, Broken> {
        let message = Message::from_user("m-1", vec![Part::text("hello")]);
        self.task_saying(owner, id, message)
    }

    /// The same with a given first message.
    ///
    /// # Errors
    /// [`Broken::Transition`], never.
    pub fn task_saying(
        &self,
        owner: &Owner,
        id: TaskId,
        message: Message,
    ) -> Result<TaskRecord, Broken> {
        let write = self.write_id();
        let task = TaskRecord::create(
            id,
            owner.clone(),
            ContextId::made_of(self.number()),
            write.clone(),
            Generation::V10,
            Metadata::new(),
            self.now,
        );
        let mut task = task.next([Change::Accept { message }], write, self.now, self.expiry())?;
        task.fields().unknown = later();
        stored::arrange(&mut task);
        Ok(task)
    }

    /// A new task under a server-made id.
    ///
    /// # Errors
    /// [`Broken::Transition`], never.
    pub fn task(&self) -> Result<TaskRecord, Broken> {
        self.new_task(&self.owner, TaskId::made_of(self.number()))
    }

    /// The expiry of the tasks made here.
    #[must_use]
    pub fn expiry(&self) -> Timestamp {
        self.now.plus(Duration::from_secs(3600))
    }

    /// The record after one more commit.
    ///
    /// # Errors
    /// [`Broken::Transition`] when the record does not accept the changes.
    pub fn next(
        &self,
        record: &TaskRecord,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<TaskRecord, Broken> {
        let mut next = record.next(changes, self.write_id(), self.now, self.expiry())?;
        stored::arrange(&mut next);
        Ok(next)
    }

    /// The change that starts a turn.
    #[must_use]
    pub fn start(&self) -> Change {
        Change::Start {
            lease_until: self.now.plus(Duration::from_secs(60)),
        }
    }

    /// The record after one commit that starts and completes its turn.
    ///
    /// # Errors
    /// [`Broken::Transition`] when the turn has been started already.
    pub fn finished(&self, record: &TaskRecord) -> Result<TaskRecord, Broken> {
        self.next(record, [self.start(), Change::Complete { message: None }])
    }

    /// A write that creates `record`.
    #[must_use]
    pub fn create(&self, record: &TaskRecord) -> TaskWrite {
        self.write(record, Expect::Absent)
    }

    /// A write of `record` over `before`.
    #[must_use]
    pub fn update(&self, record: &TaskRecord, before: &TaskRecord) -> TaskWrite {
        self.write(record, Expect::of(before))
    }

    /// A write of `record` under the condition `expect`.
    #[must_use]
    pub fn write(&self, record: &TaskRecord, expect: Expect) -> TaskWrite {
        TaskWrite {
            record: record.clone(),
            expect,
            thread: None,
            pushes: Vec::new(),
            key: None,
            has_pointer: false,
            now: self.now,
        }
    }

    /// Stores a new task.
    ///
    /// # Errors
    /// [`Broken::Store`] when the store fails.
    pub async fn stored(&self, stores: &Stores, record: &TaskRecord) -> Result<(), Broken> {
        let answer = stores.records.commit(&self.create(record)).await?;
        assert_eq!(answer, CommitResult::Done, "a new task is stored");
        Ok(())
    }

    /// Stores one more commit on top of `record`, and checks that a load returns it
    /// unchanged.
    ///
    /// # Errors
    /// [`Broken`] when the store fails or the record does not accept the
    /// changes.
    pub async fn committed(
        &self,
        stores: &Stores,
        record: &TaskRecord,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<TaskRecord, Broken> {
        let next = self.next(record, changes)?;
        let answer = stores.records.commit(&self.update(&next, record)).await?;
        assert_eq!(answer, CommitResult::Done, "version {}", next.version);
        let found = self.loaded(stores, record).await?;
        assert!(found.as_ref() == Some(&next), "version {}", next.version);
        Ok(next)
    }

    /// The stored record of the task of `record`.
    ///
    /// # Errors
    /// [`Broken::Store`] when the store fails.
    pub async fn loaded(
        &self,
        stores: &Stores,
        record: &TaskRecord,
    ) -> Result<Option<TaskRecord>, Broken> {
        let owner = &record.owner;
        Ok(stores.records.load(owner, &record.id, self.now).await?)
    }

    /// A write of the thread that follows version `expect`.
    #[must_use]
    pub fn thread(&self, owner: &Owner, id: &ContextId, expect: u64) -> ThreadWrite {
        let said = format!("said at {expect}");
        let state = ThreadState {
            events: vec![Message::from_user("m", vec![Part::text(said)])],
            session: [("seen".to_owned(), serde_json::json!(expect))].into(),
            unknown: later(),
        };
        ThreadWrite {
            record: ThreadRecord {
                owner: owner.clone(),
                context_id: id.clone(),
                version: expect + 1,
                status: ThreadStatus::Active,
                created_at: self.now,
                updated_at: self.now,
                expires_at: self.at(86_400_000),
                state_expires_at: self.at(3_600_000),
                kept_until: self.at(86_400_000),
                state_version: expect + 1,
                state,
                unknown: later(),
            },
            expect,
            write: self.write_id(),
        }
    }

    /// A query for all tasks of an owner.
    #[must_use]
    pub const fn everything(&self) -> RecordQuery {
        RecordQuery {
            context_id: None,
            state: None,
            status_after: None,
            after: None,
            limit: 100,
            count_limit: 1000,
            now: self.now,
        }
    }
}
