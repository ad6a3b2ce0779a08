//! The table and the bytes in memory, with points and faults in front of them.

use crate::fleet::Release;
use crate::hub::{Fate, Hub, Late, LocalClock, Service};
use crate::mutant::Mutant;
use crate::oracle::{Life, Oracle};
use a2a_lambda::engine::Clock as _;
use a2a_lambda::store::keys::Key;
use a2a_lambda::store::memory::MemoryStore;
use a2a_lambda::store::queue::TaskImage;
use a2a_lambda::store::records::to_task;
use a2a_lambda::store::table::{
    Action, Comparison, Condition, ConditionCheck, Item, ItemChange, Query, QueryPage,
    ReadTable as _, Statement, Table, Value, Write, WriteResult,
};
use a2a_lambda::store::{
    BlobHead, BlobOwner, Blobs, Download, Expect, ReadBlobs, StoreError, TaskWrite, ThreadWrite,
    UploadTerms, UploadUrl, stored,
};
use a2a_lambda::task::{
    ContextId, IdError, Owner, Subject, TaskKey, TaskRecord, TenantId, Timestamp, WriteId,
};
use a2a_lambda::testing::{ItemKind, TableHooks, committed_task};
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Write ids that a stored task remembers here. The runtime keeps eight; with two, a
/// history can exceed the number.
const WRITES: usize = 2;

/// The store of one history.
#[derive(Debug)]
pub(crate) struct SimStore {
    pub(crate) memory: MemoryStore,
    hub: Arc<Hub>,
    /// Idempotency keys as a planted fault keeps them: apart from their tasks.
    loose: Mutex<BTreeMap<Key, Item>>,
    /// The epochs that an answer has raised.
    resumed: Mutex<BTreeSet<(Life, u64)>>,
    /// Pointers that a planted fault writes after their tasks.
    pointers: Mutex<Vec<Statement>>,
}

/// The unit of points that pass during the wait for a lost reply: up to three times as
/// many.
const HELD: u64 = 8;
/// Attempts of the AWS SDK per call.
const ATTEMPTS: u32 = 3;

fn away() -> StoreError {
    StoreError::Unavailable("simulated".to_owned())
}

impl SimStore {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self {
            memory: MemoryStore::new(),
            hub,
            loose: Mutex::default(),
            resumed: Mutex::default(),
            pointers: Mutex::default(),
        }
    }

    /// One call of the table.
    async fn call<T, F>(&self, call: impl FnMut() -> F + Send) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.call_of(Service::Table, call).await
    }

    /// One call as the SDK makes it: repeated on failure, unless the process has used up its
    /// retries.
    async fn call_of<T, F>(
        &self,
        service: Service,
        mut call: impl FnMut() -> F + Send,
    ) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        for _ in 1..ATTEMPTS {
            match self.attempt(service, &mut call).await {
                Err(StoreError::Unavailable(_)) if self.hub.world().repeats() => {}
                decided => return decided,
            }
        }
        self.attempt(service, &mut call).await
    }

    /// One attempt. It can be stopped before and after, fail before it takes effect, and lose
    /// its reply.
    async fn attempt<T, F>(
        &self,
        service: Service,
        call: &mut (impl FnMut() -> F + Send),
    ) -> Result<T, StoreError>
    where
        T: Send,
        F: Future<Output = Result<T, StoreError>> + Send,
    {
        self.hub.pause().await;
        if self.hub.world().away == Some(service) {
            return Err(away());
        }
        let fate = self.hub.world().fate();
        let done = match fate {
            Fate::Refused => Err(away()),
            Fate::Fine => call().await,
            Fate::Unheard => {
                call().await?;
                self.held().await;
                Err(away())
            }
            Fate::Twice => {
                call().await?;
                call().await
            }
        };
        self.hub.pause().await;
        done
    }

    /// Lets other processes run while the caller waits for a reply that is lost.
    async fn held(&self) {
        let points = self.hub.world().chance.below(4) * HELD;
        for _ in 0..points {
            self.hub.pause().await;
        }
    }

    /// Writes to the table, and passes what is new to the oracle and the stream.
    async fn write(&self, mut write: Write, clock: &LocalClock) -> Result<WriteResult, StoreError> {
        self.hold_pointers(&mut write);
        if let Some(task) = committed_task(&write) {
            let outcome = self.commit(write, &task, clock).await;
            self.hub.pause().await;
            self.put_pointers(&task).await?;
            return outcome;
        }
        if write.statements.is_empty() || self.keeps_lease(&write) || self.keeps_ttl(&write) {
            return Ok(WriteResult::Done(None));
        }
        let write = self.planted(write)?;
        let thread = write
            .statements
            .iter()
            .find(|statement| ItemKind::of(&statement.key) == ItemKind::Thread);
        let thread = thread.map(|it| (it.key.clone(), it.action == Action::Delete));
        let outcome = self.memory.table.write(write).await?;
        if let (Some((key, is_gone)), WriteResult::Done(_)) = (thread, &outcome) {
            if is_gone {
                let context = context_of(&key)?;
                self.hub.world().oracle.thread_gone(&context);
            } else if let Some(write) = self.thread_at(&key).await? {
                self.hub.world().oracle.thread_kept(&write);
            }
        }
        Ok(outcome)
    }

    /// Stores a commit, and passes it to the oracle and the stream if it is new.
    async fn commit(
        &self,
        write: Write,
        task: &TaskRecord,
        clock: &LocalClock,
    ) -> Result<WriteResult, StoreError> {
        let mutant = self.hub.world().mutant;
        if mutant == Some(Mutant::LostCommit) && self.hub.world().chance.in_thousand(20) {
            return Ok(WriteResult::Done(None));
        }
        if mutant == Some(Mutant::ReleaseLost) && task.not_before.is_some() {
            return Err(away());
        }
        let mut write = self.planted(write)?;
        let key = self.loose_key(&mut write);
        if let Some((at, key)) = &key {
            if let Some(refused) = self.loosely_refused(&write, *at, key) {
                return Ok(refused);
            }
            if self.hub.world().is(Mutant::KeyUnchecked) {
                self.hub.pause().await;
            }
        }
        if self.is_made_again(&write, task).await? {
            self.hub.world().oracle.abandoned = true;
        }
        let outcome = self.memory.table.write(write.clone()).await?;
        match outcome {
            WriteResult::Done(_) => {
                self.note(&write, task, clock).await?;
                if let Some((_, key)) = key {
                    if self.hub.world().is(Mutant::KeyAfterTask) {
                        self.hub.pause().await;
                    }
                    if let Action::Put(item) = key.action {
                        self.loose().insert(key.key, item);
                    }
                }
                if task.state().is_interrupted() && self.takes_late() {
                    while self.hub.world().late == Late::Held {
                        self.hub.pause().await;
                    }
                    return Err(away());
                }
                Ok(WriteResult::Done(None))
            }
            WriteResult::Refused(mut checks) => {
                if let Some(ConditionCheck::Failed(Some(item))) = checks.first_mut() {
                    self.disguise(item, task)?;
                }
                Ok(WriteResult::Refused(checks))
            }
            other @ WriteResult::Unknown(_) => Ok(other),
        }
    }

    /// The write with the planted fault, and with fewer write ids than the runtime keeps.
    fn planted(&self, mut write: Write) -> Result<Write, StoreError> {
        let mutant = self.hub.world().mutant;
        let is_commit = committed_task(&write).is_some();
        for statement in &mut write.statements {
            let kind = ItemKind::of(&statement.key);
            let of_task = matches!(kind, ItemKind::Task | ItemKind::Child);
            match mutant {
                Some(Mutant::BlindCommit) if is_commit && of_task => statement.condition = None,
                Some(Mutant::BlindThread) if is_commit && kind == ItemKind::Thread => {
                    statement.condition = None;
                }
                Some(Mutant::IncarnationIgnored) if kind == ItemKind::Task => {
                    let condition = statement.condition.take();
                    statement.condition = condition.map(of_any_incarnation);
                }
                _ => {}
            }
            if kind != ItemKind::Task || !is_commit {
                continue;
            }
            let is_release = sets(statement, "not_before");
            edit_body(statement, |body| {
                if let Some(serde_json::Value::Array(ids)) = body.get_mut("writeIds") {
                    ids.drain(..ids.len().saturating_sub(WRITES));
                }
                if mutant == Some(Mutant::WriteIdIgnored) {
                    body.insert("writeIds".to_owned(), vec!["unknown"].into());
                }
                if mutant == Some(Mutant::ReleaseCounted) && is_release {
                    let attempt = body.get("attempt").and_then(|it| it.as_u64());
                    let next = attempt.unwrap_or(1) + 1;
                    body.insert("attempt".to_owned(), next.into());
                }
            })?;
        }
        Ok(write)
    }

    /// Takes the pointers to new tasks out of a write, if a planted fault writes them later.
    fn hold_pointers(&self, write: &mut Write) {
        if self.hub.world().is(Mutant::PointerAfterTask) {
            let is_new = |it: &Statement| {
                ItemKind::of(&it.key) == ItemKind::Pointer && matches!(it.action, Action::Put(_))
            };
            let (new, rest) = write.statements.drain(..).partition(is_new);
            write.statements = rest;
            let mut pointers = self.pointers.lock().unwrap_or_else(PoisonError::into_inner);
            pointers.extend::<Vec<_>>(new);
        }
    }

    /// Writes the pointer to `task` that was taken out of a write.
    async fn put_pointers(&self, task: &TaskRecord) -> Result<(), StoreError> {
        let mine = |it: &Statement| it.key.sort().contains(task.incarnation.as_str());
        let new: Vec<Statement> = {
            let mut pointers = self.pointers.lock().unwrap_or_else(PoisonError::into_inner);
            pointers.extract_if(.., |it| mine(it)).collect()
        };
        for pointer in new {
            self.memory.table.write(pointer.into()).await?;
        }
        Ok(())
    }

    /// Whether a write keeps an item longer, and a planted fault does not.
    fn keeps_ttl(&self, write: &Write) -> bool {
        let prolongs = |it: &Statement| match &it.action {
            Action::Update(changes) => changes.len() == 1 && sets(it, "ttl"),
            _ => false,
        };
        self.hub.world().is(Mutant::NothingProlonged) && write.statements.iter().any(prolongs)
    }

    /// Whether a write drops a lease, and a planted fault keeps it.
    fn keeps_lease(&self, write: &Write) -> bool {
        let drops = |statement: &Statement| match &statement.action {
            Action::Update(changes) => {
                sets(statement, "cursor") && changes.contains(&ItemChange::Remove("holder".into()))
            }
            _ => false,
        };
        self.hub.world().is(Mutant::LeaseStays) && write.statements.iter().any(drops)
    }

    /// Takes the idempotency key out of a commit, if a planted fault writes it apart.
    fn loose_key(&self, write: &mut Write) -> Option<(usize, Statement)> {
        let is_key = |it: &Statement| ItemKind::of(&it.key) == ItemKind::IdempotencyKey;
        let at = write.statements.iter().position(is_key);
        let at = at.filter(|_| self.keeps_keys_loose())?;
        Some((at, write.statements.remove(at)))
    }

    /// The outcome of a commit whose key is taken, as far as the loose keys show it.
    fn loosely_refused(&self, write: &Write, at: usize, key: &Statement) -> Option<WriteResult> {
        let item = self.loose().get(&key.key).cloned()?;
        let Action::Put(mine) = &key.action else {
            return None;
        };
        let by = item.get("w0").cloned();
        let replaces = match &key.condition {
            Some(Condition::Any(any)) => any.iter().any(|it| {
                matches!(it, Condition::Is(_, Comparison::Equal, dead) if Some(dead) == by.as_ref())
            }),
            _ => false,
        };
        if replaces || by.as_ref() == mine.get("w0") {
            return None;
        }
        let mut checks = vec![ConditionCheck::Held; write.statements.len()];
        checks.insert(at, ConditionCheck::Failed(Some(item)));
        Some(WriteResult::Refused(checks))
    }

    /// Whether a create is repeated after its reply was lost and its task was deleted and
    /// removed. No store can recognise this repeat, so the history ends without a verdict.
    async fn is_made_again(&self, write: &Write, task: &TaskRecord) -> Result<bool, StoreError> {
        let creates = |it: &Statement| {
            ItemKind::of(&it.key) == ItemKind::Task && matches!(it.action, Action::Put(_))
        };
        let knows = self.hub.world().oracle.knows(task);
        if !knows || !write.statements.iter().any(creates) {
            return Ok(false);
        }
        let stored = self.whole(&task.key()).await?;
        let life = Life::of(task);
        Ok(stored.is_none_or(|stored| Life::of(&stored) != life))
    }

    /// The whole task as it is stored.
    async fn whole(&self, key: &TaskKey) -> Result<Option<TaskRecord>, StoreError> {
        self.memory.records.sweep().load_by_key(key).await
    }

    /// Passes a commit to the oracle and the stream, once.
    async fn note(
        &self,
        write: &Write,
        task: &TaskRecord,
        clock: &LocalClock,
    ) -> Result<(), StoreError> {
        if self.hub.world().oracle.knows(task) {
            return Ok(());
        }
        let Some(mut record) = self.whole(&task.key()).await? else {
            return Ok(());
        };
        record.fields().write_ids = task.write_ids.to_vec();
        let thread = write.statements.iter();
        let mut thread = thread.filter(|it| ItemKind::of(&it.key) == ItemKind::Thread);
        let thread = match thread.next() {
            Some(statement) => self.thread_at(&statement.key).await?,
            None => None,
        };
        let write = TaskWrite {
            record,
            expect: Expect::Absent,
            thread,
            pushes: Vec::new(),
            key: None,
            has_pointer: true,
            now: clock.now(),
        };
        self.note_resume(&write.record);
        let mut world = self.hub.world();
        world.oracle.committed(&write);
        world.messages.streamed(&write.record);
        Ok(())
    }

    /// The last write of the thread at `key`, as it is stored.
    async fn thread_at(&self, key: &Key) -> Result<Option<ThreadWrite>, StoreError> {
        let found = self.memory.table.get(std::slice::from_ref(key)).await?;
        let Some(item) = found.first() else {
            return Ok(None);
        };
        let text = |name: &str| match item.get(name) {
            Some(Value::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let owner = owner_of(key, &text("owner_subject"))?;
        let id = context_of(key)?;
        let found = self.memory.records.load_thread(&owner, &id).await?;
        Ok(found.map(|record| ThreadWrite {
            expect: record.version - 1,
            record,
            write: WriteId::from_stored(text("w0")),
        }))
    }

    /// Records the epoch if this stored commit is that of an answer.
    fn note_resume(&self, record: &TaskRecord) {
        let resumes = {
            let world = self.hub.world();
            let before = world.oracle.tasks.get(&Life::of(record));
            before.is_some_and(|it| TaskImage::of(&it.record).turn < TaskImage::of(record).turn)
        };
        if resumes {
            let raised = (Life::of(record), record.epoch);
            self.resumed().insert(raised);
        }
    }

    /// Whether only an answer has raised the epoch that `mine` has.
    fn is_resumed(&self, current: &TaskRecord, mine: &TaskRecord) -> bool {
        let raised = (Life::of(current), current.epoch);
        mine.epoch + 1 == current.epoch && self.resumed().contains(&raised)
    }

    fn resumed(&self) -> MutexGuard<'_, BTreeSet<(Life, u64)>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reply to the commit of a question is held back.
    fn takes_late(&self) -> bool {
        let late = &mut self.hub.world().late;
        let takes = *late == Late::Next;
        if takes {
            *late = Late::Held;
        }
        takes
    }

    pub(crate) fn keeps_keys_loose(&self) -> bool {
        let world = self.hub.world();
        world.is(Mutant::KeyAfterTask) || world.is(Mutant::KeyUnchecked)
    }

    fn loose(&self) -> MutexGuard<'_, BTreeMap<Key, Item>> {
        self.loose.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stored task as a commit of `mine` sees it in a conflict, with the planted fault.
    fn disguise(&self, item: &mut Item, mine: &TaskRecord) -> Result<(), StoreError> {
        let mutant = self.hub.world().mutant;
        let epoch = || Value::from(i64::try_from(mine.epoch).unwrap_or(i64::MAX));
        match mutant {
            Some(Mutant::EpochKeptByResume) if self.is_resumed(&to_task(item)?, mine) => {
                item.insert("epoch".to_owned(), epoch());
            }
            Some(Mutant::EpochIgnored) => {
                item.insert("epoch".to_owned(), epoch());
            }
            Some(Mutant::IncarnationIgnored) => {
                let incarnation = mine.incarnation.as_str().into();
                item.insert("incarnation".to_owned(), incarnation);
            }
            _ => {}
        }
        Ok(())
    }

    async fn keep_blob(
        &self,
        owner: Option<&BlobOwner>,
        key: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let mutant = self.hub.world().mutant;
        if mutant == Some(Mutant::LostBlob) {
            return Ok(());
        }
        let put = match owner {
            Some(owner) => self.memory.blobs.put_for(owner, key, bytes).await,
            None => self.memory.blobs.put(key, bytes).await,
        };
        if mutant == Some(Mutant::OneBlobKey) {
            return Ok(());
        }
        put
    }

    fn blob_key(&self, key: &str) -> String {
        if self.hub.world().is(Mutant::OneBlobKey) {
            let cut = key.rfind('/').unwrap_or(key.len());
            return key.chars().take(cut).collect();
        }
        key.to_owned()
    }
}

impl SimStore {
    /// The TTL of the table removes what has expired, up to 48 hours late.
    pub(crate) fn clean_up(&self) {
        const LATE: u64 = 48 * 3_600_000;
        let mut world = self.hub.world();
        let late = i64::try_from(world.chance.below(LATE)).unwrap_or(0);
        let now = Timestamp::from_millis(world.now - late);
        self.memory.table.clean_up(now);
    }

    /// The tasks that live but have lost an item beside them, or that their context does not
    /// know.
    pub(crate) fn lost(&self, oracle: &Oracle, now: i64, has_keys: bool) -> Vec<String> {
        let now = Timestamp::from_millis(now);
        let living = oracle.living().map(|(life, seen)| (life, &seen.record));
        let living = living.filter(|(_, record)| !record.is_expired(now));
        let lost = living.filter_map(|(life, record)| {
            let why = self.lost_of(record, now, has_keys).now_or_never()??;
            Some(format!("G20: task {life} lives and has lost its {why}"))
        });
        lost.collect()
    }

    /// What is missing beside a task.
    async fn lost_of(
        &self,
        record: &TaskRecord,
        now: Timestamp,
        has_keys: bool,
    ) -> Option<&'static str> {
        let (owner, records) = (&record.owner, &self.memory.records);
        let Ok(Some(whole)) = self.whole(&record.key()).await else {
            return Some("children");
        };
        for object in whole.object_keys() {
            if !matches!(self.memory.blobs.head(object).await, Ok(Some(_))) {
                return Some("object");
            }
        }
        let context = records
            .tasks_in(owner, &record.context_id, None, None, 1000)
            .await;
        let is_mine = |task: &TaskRecord| task.is_same_task(record);
        if !context.is_ok_and(|(tasks, _)| tasks.iter().any(is_mine)) {
            return Some("pointer");
        }
        for key in record.keys.iter().filter(|_| has_keys) {
            if !matches!(records.load_key(owner, key, now).await, Ok(Some(_))) {
                return Some("idempotency key");
            }
        }
        let pushes = records.pushes(owner, &record.id).await.unwrap_or_default();
        let mine = pushes
            .iter()
            .filter(|it| it.incarnation == record.incarnation);
        (mine.count() < record.push_ids.len()).then_some("push config")
    }

    /// The webhooks with missing events although no push queue message is left, each with the
    /// violation that it is.
    pub(crate) fn unheard(&self, oracle: &Oracle) -> Vec<(String, String)> {
        let mut missed = Vec::new();
        for (life, seen) in oracle.living() {
            let record = &seen.record;
            let found = self.memory.records.pushes(&record.owner, &record.id);
            let found = found.now_or_never().and_then(Result::ok);
            let found = found.unwrap_or_default().into_iter();
            let mine = found.filter(|push| push.incarnation == record.incarnation);
            missed.extend(mine.filter_map(|push| {
                let text = oracle.missed(life, &push)?;
                Some((push.registration.id.to_string(), text))
            }));
        }
        missed
    }

    /// Stored content that no task needs any more.
    pub(crate) fn left_over(&self, oracle: &Oracle) -> Vec<String> {
        let mut left = Vec::new();
        let mut named = String::new();
        for (life, seen) in &oracle.tasks {
            let record = &seen.record;
            if !seen.ended {
                named.push_str(&stored::encode(record).to_string());
                continue;
            }
            let found = self.whole(&record.key()).now_or_never();
            let found = found.and_then(Result::ok).flatten();
            let same = found.is_some_and(|found| Life::of(&found) == *life);
            if same && seen.deleted.is_some() {
                left.push(format!("G19: task {life} is deleted and still stored"));
            }
        }
        let keys = self.memory.blobs.keys("", None, usize::MAX).now_or_never();
        for key in keys.and_then(Result::ok).unwrap_or_default() {
            if !named.contains(&key) {
                left.push(format!("object {key} is named by no task"));
            }
        }
        left
    }
}

/// The context of a thread's key.
fn context_of(key: &Key) -> Result<ContextId, StoreError> {
    let context = key.partition().splitn(5, '#').nth(4).unwrap_or_default();
    ContextId::parse(context).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// The owner of a thread.
fn owner_of(key: &Key, subject: &str) -> Result<Owner, StoreError> {
    let tenant = key.partition().split('#').nth(1).unwrap_or_default();
    let wrong = |error: IdError| StoreError::Corrupt(error.to_string());
    Ok(Owner {
        tenant: TenantId::parse(tenant).map_err(wrong)?,
        subject: Subject::parse(subject).map_err(wrong)?,
    })
}

/// Whether a statement gives an attribute a value.
fn sets(statement: &Statement, name: &str) -> bool {
    match &statement.action {
        Action::Put(item) => item.contains_key(name),
        Action::Update(changes) => changes
            .iter()
            .any(|change| matches!(change, ItemChange::Set(path, _) if path.name == name)),
        Action::Delete => false,
    }
}

/// `condition` without what it says of the incarnation.
fn of_any_incarnation(condition: Condition) -> Condition {
    let is_named =
        |it: &Condition| matches!(it, Condition::Is(path, ..) if path.name == "incarnation");
    match condition {
        Condition::All(all) => Condition::All(all.into_iter().filter(|it| !is_named(it)).collect()),
        other => other,
    }
}

/// Changes the content that a statement writes.
pub(crate) fn edit_body(
    statement: &mut Statement,
    edit: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
) -> Result<(), StoreError> {
    let body = match &mut statement.action {
        Action::Put(item) => item.get_mut("body"),
        Action::Update(changes) => changes.iter_mut().find_map(|change| match change {
            ItemChange::Set(path, value) if path.name == "body" => Some(value),
            _ => None,
        }),
        Action::Delete => None,
    };
    let Some(body) = body else { return Ok(()) };
    let encoded = match &*body {
        Value::Bytes(bytes) => stored::Encoded::Deflated(bytes.as_slice().into()),
        Value::Text(text) => stored::Encoded::Text(text.as_str().into()),
        _ => return Ok(()),
    };
    let members = serde_json::from_str(&encoded.json()?);
    let mut members: serde_json::Map<String, serde_json::Value> =
        members.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    edit(&mut members);
    *body = serde_json::Value::Object(members).to_string().into();
    Ok(())
}

/// The table as the processes of one release on one machine use it.
#[derive(Debug)]
pub(crate) struct SimTable {
    pub(crate) store: Arc<SimStore>,
    pub(crate) clock: Arc<LocalClock>,
    /// `None` if every machine runs the current release.
    pub(crate) release: Option<Release>,
}

#[async_trait]
impl TableHooks for SimTable {
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        let store = &self.store;
        let is_key = |key: &Key| ItemKind::of(key) == ItemKind::IdempotencyKey;
        store
            .call(|| async {
                if keys.iter().any(is_key) && store.keeps_keys_loose() {
                    let loose = store.loose();
                    return Ok(keys
                        .iter()
                        .filter_map(|key| loose.get(key).cloned())
                        .collect());
                }
                table.get(keys).await
            })
            .await
    }

    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        self.store.call(|| table.query(query)).await
    }

    async fn write(&self, _: &dyn Table, mut write: Write) -> Result<WriteResult, StoreError> {
        if let Some(release) = self.release {
            release.rewrite(&mut write, &self.store.hub)?;
        }
        self.store
            .call(|| self.store.write(write.clone(), &self.clock))
            .await
    }
}

#[async_trait]
impl ReadBlobs for SimStore {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        let key = self.blob_key(key);
        self.call_of(Service::Bucket, || self.memory.blobs.get(&key))
            .await
    }

    async fn head(&self, key: &str) -> Result<Option<BlobHead>, StoreError> {
        self.call_of(Service::Bucket, || self.memory.blobs.head(key))
            .await
    }

    async fn read_url(
        &self,
        _: &Download<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<String>, StoreError> {
        Ok(None)
    }
}

#[async_trait]
impl Blobs for SimStore {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.blob_key(key);
        self.call_of(Service::Bucket, || {
            self.keep_blob(None, &key, bytes.clone())
        })
        .await
    }

    async fn put_for(&self, owner: &BlobOwner, key: &str, bytes: Bytes) -> Result<(), StoreError> {
        let key = self.blob_key(key);
        // The sweep of the model follows the notes of tasks alone.
        let owner = Some(owner).filter(|owner| matches!(owner, BlobOwner::Task(_)));
        self.call_of(Service::Bucket, || {
            self.keep_blob(owner, &key, bytes.clone())
        })
        .await
    }

    async fn keys(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.call_of(Service::Bucket, || {
            self.memory.blobs.keys(prefix, after, limit)
        })
        .await
    }

    async fn remove(&self, keys: &[String]) -> Result<(), StoreError> {
        self.call_of(Service::Bucket, || self.memory.blobs.remove(keys))
            .await
    }

    async fn upload_url(
        &self,
        _: &UploadTerms<'_>,
        _: Timestamp,
        _: Duration,
    ) -> Result<Option<UploadUrl>, StoreError> {
        Ok(None)
    }
}
