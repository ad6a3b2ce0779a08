//! The store traits of threads.

use super::conditional_write::{ConditionalWrite, WriteKind};
use super::item::{self, JoinedThread};
use super::key;
use super::large_value::{self, ValueOwner};
use super::outcome::{self, Check, TRIES, TornReads};
use super::store::DynamoStore;
use super::write::WriteResult;
use a2a_lambda_model::store::{
    ReadThreads, StoreError, ThreadPage, ThreadQuery, ThreadRecord, ThreadWrite, WriteThreads,
};
use a2a_lambda_model::task::{ContextId, Owner, ThreadKey};
use async_trait::async_trait;

impl DynamoStore {
    /// Whether this write is among the last writes of the stored thread.
    pub(super) async fn thread_has(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let record = &write.record;
        let partition = key::thread(&record.owner, &record.context_id);
        let meta = self.meta(&partition).await?;
        Ok(meta.is_some_and(|meta| item::thread_written_by(&meta, &write.write)))
    }

    pub(super) async fn thread_statements(
        &self,
        write: &ThreadWrite,
    ) -> Result<Vec<ConditionalWrite>, StoreError> {
        let mut statements = vec![ConditionalWrite::thread(write, self.tombstone)?];
        if let Some(mut state) = ConditionalWrite::thread_state(write)? {
            if let WriteKind::Put(item) = &mut state.kind {
                let (owner, id) = (&write.record.owner, &write.record.context_id);
                let value_owner = ValueOwner::Thread(ThreadKey::new(owner, id));
                let name = large_value::of_thread(write);
                self.spill(item, &value_owner, &name).await?;
            }
            statements.push(state);
        }
        Ok(statements)
    }

    /// The `META` and `STATE` items of a thread, in one read.
    pub(super) async fn read_thread(
        &self,
        partition: &str,
        reads: &mut TornReads,
    ) -> Result<Option<JoinedThread>, StoreError> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk AND SK BETWEEN :meta AND :state")
            .expression_attribute_values(":pk", item::text(partition))
            .expression_attribute_values(":meta", item::text(key::META))
            .expression_attribute_values(":state", item::text(key::STATE))
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        let with_sort = |sort: &str| {
            let mut items = found.items().iter();
            items.find(|item| item::string(item, key::SK).is_ok_and(|found| found == sort))
        };
        let Some(meta) = with_sort(key::META) else {
            return Ok(None);
        };
        let mut state = with_sort(key::STATE).cloned();
        if let Some(state) = &mut state
            && item::names_state(meta, state)?
        {
            let there = self.load_value(state).await;
            if reads.result(there.map(Some))? != Some(true) {
                let version = item::integer(meta, item::VERSION)?;
                return Ok(Some(JoinedThread::Torn(version)));
            }
        }
        item::to_thread(meta, state.as_ref()).map(Some)
    }
}

#[async_trait]
impl ReadThreads for DynamoStore {
    async fn load_thread(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let partition = key::thread(owner, id);
        let mut reads = TornReads::default();
        for tries in 0..TRIES {
            match self.read_thread(&partition, &mut reads).await? {
                None => return Ok(None),
                Some(JoinedThread::Thread(thread)) => {
                    return Ok(Some(*thread).filter(|thread| thread.owner == *owner));
                }
                // Read once more: a read during a transaction can see only one of the two items.
                Some(JoinedThread::Stateless(thread)) if tries > 0 => return Ok(Some(*thread)),
                Some(JoinedThread::Stateless(_)) => {}
                Some(JoinedThread::Torn(version)) => reads.note(version),
            }
        }
        Err(reads.error())
    }

    async fn load_thread_head(
        &self,
        owner: &Owner,
        id: &ContextId,
    ) -> Result<Option<ThreadRecord>, StoreError> {
        let meta = self.meta(&key::thread(owner, id)).await?;
        let head = meta.as_ref().map(item::thread_head).transpose()?;
        Ok(head.filter(|thread| thread.owner == *owner))
    }

    async fn list_threads(
        &self,
        owner: &Owner,
        query: &ThreadQuery,
    ) -> Result<ThreadPage, StoreError> {
        self.contexts(owner, query).await
    }
}

#[async_trait]
impl WriteThreads for DynamoStore {
    async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        self.remove_thread_state(record).await
    }

    async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        self.remove_thread_items(record).await
    }

    async fn put_thread(&self, write: &ThreadWrite) -> Result<bool, StoreError> {
        let statements = self.thread_statements(write).await?;
        Ok(match self.write(statements).await? {
            WriteResult::Done => true,
            WriteResult::Refused(checks) => match checks.into_iter().next() {
                Some(Check::Failed(Some(meta))) => item::thread_written_by(&meta, &write.write),
                _ => self.thread_has(write).await?,
            },
            WriteResult::Unknown(_) if self.thread_has(write).await? => true,
            WriteResult::Unknown(why) => return Err(StoreError::Unavailable(why)),
        })
    }
}
