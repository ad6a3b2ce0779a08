//! Reads and writes threads.

use super::large_value;
use super::torn_reads::{TRIES, TornReads};
use super::{RecordReader, Records, changes, task_item, thread_item};
use crate::item::{self, VERSION};
use crate::keys::{self, META, PK, SK};
use crate::table::{Condition, ConditionCheck, ItemChange, Outcome, Query, Statement};
use a2a_lambda_model::store::{BlobOwner, StoreError, ThreadRecord, ThreadWrite};
use a2a_lambda_model::stored;
use a2a_lambda_model::task::{ContextId, Owner, ThreadKey};

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
            let head = metas.pop().as_ref().map(thread_item::head).transpose()?;
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
        let head = meta.as_ref().map(thread_item::head).transpose()?;
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
        let thread = thread_item::key(&write.record);
        let attributes = thread_item::attributes(write)?;
        let key = keys::thread(&thread);
        let mut statements = vec![if write.expect == 0 {
            Statement::put(key, item::of(attributes)).when(Condition::absent(PK))
        } else {
            let mut changes = changes(attributes);
            // Each older write id moves down one attribute. Every change reads the item as it
            // was before.
            let [_, older @ ..] = thread_item::WRITES;
            for (to, from) in older.into_iter().zip(thread_item::WRITES) {
                changes.push(ItemChange::Copy {
                    to: to.to_owned(),
                    from: from.to_owned(),
                    or: write.write.as_str().into(),
                });
            }
            Statement::update(key, changes).when(task_item::has_version(write.expect))
        }];
        if let Some(mut state) = thread_item::state(&write.record)? {
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
            Outcome::Done(_) => return Ok(true),
            Outcome::Refused(checks) => match checks.into_iter().next() {
                Some(ConditionCheck::Failed(meta)) => (meta, None),
                _ => (None, None),
            },
            Outcome::Unknown(why) => {
                let key = keys::thread(&thread_item::key(&write.record));
                (self.item(key).await?, Some(why))
            }
        };
        // A repeated attempt may have met our own write.
        let is_mine = meta.is_some_and(|it| thread_item::was_written_by(&it, &write.write));
        match why {
            Some(why) if !is_mine => Err(StoreError::Unavailable(why)),
            _ => Ok(is_mine),
        }
    }
}
