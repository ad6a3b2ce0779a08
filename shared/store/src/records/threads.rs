//! Keeps threads: converts them to their items and back, reads and writes them.

use super::large_value;
use super::{RecordReader, Records, TRIES, TornReads, changes, task_item};
use crate::item::{
    self, Attributes, BODY, EXPIRES_AT, OWNER_SUBJECT, SCHEMA, TTL, VERSION, corrupt, count,
};
use crate::keys::{self, LISTS_PK, LISTS_SK, META, PK, SK, SWEEP_PK, SWEEP_SK};
use crate::table::{
    Condition, ConditionCheck, Item, ItemChange, Query, Statement, Value, WriteResult,
};
use a2a_lambda_model::store::{
    BlobOwner, Expiring, StoreError, ThreadRecord, ThreadStatus, ThreadWrite,
};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{ContextId, Owner, ThreadKey, Timestamp};

/// The write ids of a thread's last four writes, newest first.
const WRITES: [&str; 4] = [item::WRITE, "w1", "w2", "w3"];
const STATE_VERSION: &str = "state_version";

/// The key of a thread.
pub(super) fn key(record: &ThreadRecord) -> ThreadKey {
    ThreadKey::new(&record.owner, &record.context_id)
}

/// The attributes of a thread, without its key, its state and its older write ids.
///
/// # Errors
/// [`StoreError::TooLarge`].
pub(super) fn attributes(write: &ThreadWrite) -> Result<Attributes, StoreError> {
    let record = &write.record;
    let list = (!record.is_cleared()).then(|| keys::contexts(&record.owner));
    let list_key = || keys::list_sort(record.updated_at, &record.context_id);
    let list_key = list.as_ref().map(|_| list_key().into());
    let body = item::content(stored::thread_body(record)?);
    let mut attributes = vec![
        (SCHEMA, Some(i64::from(stored::SCHEMA).into())),
        (VERSION, Some(count(record.version))),
        (OWNER_SUBJECT, Some(record.owner.subject.as_str().into())),
        (STATE_VERSION, Some(count(record.state_version))),
        ("thread_id", Some(record.context_id.as_str().into())),
        ("tenant_id", Some(record.owner.tenant.as_str().into())),
        ("created_at", Some(record.created_at.to_rfc3339().into())),
        ("updated_at", Some(record.updated_at.to_rfc3339().into())),
        ("status", Some(record.status.as_str().into())),
        (EXPIRES_AT, Some(item::millis(record.expires_at))),
        (TTL, Some(item::seconds(record.kept_until))),
        (BODY, Some(body)),
        (LISTS_PK, list.map(|list| list.key().into())),
        (LISTS_SK, list_key),
        (item::WRITE, Some(write.write.as_str().into())),
    ];
    attributes.extend(swept(record, Expiring::Deleted));
    Ok(attributes)
}

/// The attributes of the sweep index; absent if the sweep has not to look at the thread.
fn swept(record: &ThreadRecord, what: Expiring) -> [(&'static str, Option<Value>); 2] {
    let at = record.swept_at(what);
    let shard = at.map(|_| keys::expiring_of(&key(record)).key().into());
    [(SWEEP_PK, shard), (SWEEP_SK, at.map(item::millis))]
}

/// The expiry of the `STATE` item. Readers check it and the sweep removes the item; the table's
/// TTL comes later.
pub(super) fn state_expiry(record: &ThreadRecord) -> Attributes {
    let mut attributes = vec![
        (EXPIRES_AT, Some(item::millis(record.state_expires_at))),
        (TTL, Some(item::seconds(record.state_kept_until()))),
    ];
    attributes.extend(swept(record, Expiring::State));
    attributes
}

/// The `STATE` item of a thread, without its key; `None` if the write does not change the state.
///
/// # Errors
/// [`StoreError::TooLarge`].
fn state(record: &ThreadRecord) -> Result<Option<Item>, StoreError> {
    if !record.replaces_state() {
        return Ok(None);
    }
    let state = stored::encode_state(&record.state)?;
    let mut attributes = state_expiry(record);
    attributes.extend([
        (OWNER_SUBJECT, Some(record.owner.subject.as_str().into())),
        (VERSION, Some(count(record.version))),
        (BODY, Some(item::content(state))),
    ]);
    Ok(Some(item::of(attributes)))
}

/// The thread from its `META` item, without its state.
///
/// # Errors
/// [`StoreError::Form`] for a form that this program does not read, else
/// [`StoreError::Corrupt`].
pub(super) fn head(meta: &Item) -> Result<ThreadRecord, StoreError> {
    item::form(meta)?;
    let thread = keys::thread_of(item::text(meta, PK)?);
    let (tenant, context_id) = thread.ok_or_else(|| corrupt("the partition is not a thread's"))?;
    let statuses = [ThreadStatus::Active, ThreadStatus::Cleared];
    let status = item::text(meta, "status")?;
    let status = statuses.into_iter().find(|it| it.as_str() == status);
    let read = |name| {
        let time = Timestamp::parse_rfc3339(item::text(meta, name)?);
        time.ok_or_else(|| corrupt(format_args!("expected a time in attribute `{name}`")))
    };
    let owner = item::owner(meta, tenant)?;
    let (created_at, updated_at) = (read("created_at")?, read("updated_at")?);
    let mut record = ThreadRecord {
        version: item::number(meta, VERSION)?,
        status: status.ok_or_else(|| corrupt("unknown status"))?,
        expires_at: item::time(meta, EXPIRES_AT)?,
        state_version: item::number(meta, STATE_VERSION)?,
        kept_until: Timestamp::from_millis(item::number::<i64>(meta, TTL)?.saturating_mul(1000)),
        ..ThreadRecord::new(owner, context_id, created_at, updated_at)
    };
    stored::restore_thread(&mut record, &item::body(meta)?)?;
    Ok(record)
}

impl RecordReader {
    /// The stored thread; `None` if absent or not `owner`'s. An expired thread is
    /// returned, because its reader must distinguish expired from unknown.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let query = Query {
            range: keys::thread_and_state(),
            ..keys::thread_items(&ThreadKey::new(owner, id)).into()
        };
        let mut reads = TornReads::default();
        for tries in 0..TRIES {
            let items = self.table.query(&query).await?.items.into_iter();
            let (mut metas, mut states): (Vec<_>, Vec<_>) =
                items.partition(|item| item::text(item, SK).is_ok_and(|sort| sort == META));
            let head = metas.pop().as_ref().map(head).transpose()?;
            let Some(mut thread) = head.filter(|thread| thread.owner == *owner) else {
                return Ok(None);
            };
            if thread.state_version == 0 {
                return Ok(Some(thread));
            }
            let Some(mut state) = states.pop() else {
                // It was removed after its expiry, or the read ran during a transaction and saw
                // only one of the two items. So it is read once more.
                if tries > 0 {
                    return Ok(Some(thread));
                }
                continue;
            };
            reads.note(thread.version);
            if item::number::<u64>(&state, VERSION)? == thread.state_version {
                let there = self.load_value(&mut state).await.map(Some);
                if reads.result(there)? == Some(true) {
                    thread.state = stored::decode_state(&item::body(&state)?)?;
                    return Ok(Some(thread));
                }
            }
        }
        Err(reads.error())
    }

    /// The same without its state, which may be large.
    ///
    /// # Errors
    /// As [`RecordReader::load_thread`].
    pub async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let meta = self.item(keys::thread(&ThreadKey::new(owner, id))).await?;
        let head = meta.as_ref().map(head).transpose()?;
        Ok(head.filter(|thread| thread.owner == *owner))
    }
}

impl Records {
    /// The statements of a thread and, if it changes, of its state. That needs no condition,
    /// since the thread's own statement is in the same transaction.
    ///
    /// # Errors
    /// [`StoreError`] when an object cannot be stored.
    pub(super) async fn thread_statements(
        &self,
        write: &ThreadWrite,
    ) -> Result<Vec<Statement>, StoreError> {
        let thread = key(&write.record);
        let attributes = attributes(write)?;
        let key = keys::thread(&thread);
        let mut statements = vec![if write.expect == 0 {
            Statement::put(key, item::of(attributes)).when(Condition::absent(PK))
        } else {
            let mut changes = changes(attributes);
            // Each older write id moves down one attribute. Every change reads the item as it
            // was before.
            let [_, older @ ..] = WRITES;
            for (to, from) in older.into_iter().zip(WRITES) {
                changes.push(ItemChange::Copy {
                    to: to.to_owned(),
                    from: from.to_owned(),
                    or: write.write.as_str().into(),
                });
            }
            Statement::update(key, changes).when(task_item::has_version(write.expect))
        }];
        if let Some(mut state) = state(&write.record)? {
            let name = large_value::of_thread(write);
            self.spill(&mut state, &BlobOwner::Thread(thread.clone()), &name)
                .await?;
            statements.push(Statement::put(keys::thread_state(&thread), state));
        }
        Ok(statements)
    }

    /// Stores the thread if its stored version is `write.expect`; `false` if another
    /// write is stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the write may or may not be stored.
    pub async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let statements = self.thread_statements(write).await?;
        let (meta, why) = match self.table.write(statements.into()).await? {
            WriteResult::Done(_) => return Ok(true),
            WriteResult::Refused(checks) => match checks.into_iter().next() {
                Some(ConditionCheck::Failed(meta)) => (meta, None),
                _ => (None, None),
            },
            WriteResult::Unknown(why) => {
                let key = keys::thread(&key(&write.record));
                (self.item(key).await?, Some(why))
            }
        };
        // A repeated attempt may have met our own write.
        let id = Value::from(write.write.as_str());
        let is_mine = meta.is_some_and(|it| WRITES.iter().any(|name| it.get(*name) == Some(&id)));
        match why {
            Some(why) if !is_mine => Err(StoreError::Unavailable(why)),
            _ => Ok(is_mine),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_lambda_model::task::distinct::Values;
    use std::time::Duration;

    #[test]
    fn a_thread_reads_back_from_its_items_unchanged() {
        let mut values = Values::default();
        for _ in 0..2 {
            let mut thread: ThreadRecord = values.make();
            let seconds = Duration::from_secs(values.make());
            thread.kept_until = Timestamp::default().plus(seconds);
            let write = ThreadWrite {
                record: thread.clone(),
                expect: 0,
                write: values.make(),
            };
            let mut meta = keys::thread(&key(&thread)).item();
            meta.extend(item::of(attributes(&write).unwrap()));
            let of_state = ThreadRecord {
                version: thread.state_version,
                ..thread.clone()
            };
            let state = state(&of_state).unwrap().unwrap();
            let mut read = head(&meta).unwrap();
            read.state = stored::decode_state(&item::body(&state).unwrap()).unwrap();
            assert_eq!(read, thread);
            let kept = item::seconds(thread.kept_until);
            assert_eq!(meta.get(TTL), Some(&kept));
            for (name, at) in [
                ("created_at", thread.created_at),
                ("updated_at", thread.updated_at),
            ] {
                assert_eq!(meta.get(name), Some(&at.to_rfc3339().into()));
            }
            let end = item::millis(thread.state_expires_at);
            assert_eq!(state.get(EXPIRES_AT), Some(&end));
        }
    }
}
