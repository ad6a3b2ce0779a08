//! Reads projections of tasks: only the child items that a response shows, and no more bytes
//! than the response budget allows.

use super::torn_reads::{TRIES, TornReads};
use super::{RecordReader, task_item};
use crate::item::{self, VERSION};
use crate::keys;
use a2a_lambda_model::store::{ProjectedTask, Projection, StoreError};
use a2a_lambda_model::stored::{self, ChildName, FoundChild, NeededChildren};
use a2a_lambda_model::task::{TaskRecord, Timestamp};
use std::collections::BTreeMap;

impl RecordReader {
    /// A head with the `wanted` content, read consistently; `None` if the task no
    /// longer exists. The result may be newer than the head.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or an item is corrupt.
    pub async fn project(
        &self,
        mut head: TaskRecord,
        wanted: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        let (owner, task) = (head.owner().clone(), head.key());
        let (mut read, mut reads) = (0, TornReads::default());
        for _ in 0..TRIES {
            if !head.is_partial() {
                return Ok(Some(ProjectedTask::of_whole(head)));
            }
            let needed = stored::needs(&head, wanted);
            read += needed.bytes;
            let found = self.needed_children(&head, &needed).await;
            if let Some(found) = reads.result(found)? {
                stored::join(&mut head, &found)?;
                return Ok(Some(ProjectedTask {
                    record: head,
                    complete: needed.complete,
                    read,
                }));
            }
            // Another commit was made meanwhile, or a child is missing.
            reads.note(head.version());
            let found = self.own_item(&task).await?;
            match found.filter(|it| *it.owner() == owner && !it.expired(now)) {
                Some(fresh) => head = fresh,
                None => return Ok(None),
            }
        }
        Err(reads.error())
    }

    /// The children that are needed; `None` if one is missing or was replaced. The head says what
    /// each of them has, so no object is read that does not fit.
    async fn needed_children(
        &self,
        head: &TaskRecord,
        needed: &NeededChildren,
    ) -> Result<Option<BTreeMap<ChildName, FoundChild>>, StoreError> {
        let mut items = BTreeMap::new();
        let state = keys::child(&head.key(), ChildName::State);
        if needed.names.contains(&ChildName::State)
            && let Some(item) = self.item(state).await?
        {
            let version: u64 = item::number(&item, VERSION)?;
            let state = head.layout().state.as_ref();
            if state.is_some_and(|state| state.version == version) {
                items.insert(ChildName::State, item);
            }
        }
        let mut moved = needed.names.iter().filter(|it| **it != ChildName::State);
        if let Some(first) = moved.next() {
            let last = moved.next_back().unwrap_or(first);
            let range = keys::children_between(*first, *last);
            let moved = self.children(head, range, &[]).await?.into_iter();
            items.extend(moved.filter(|(name, _)| needed.names.contains(name)));
        }
        let is_complete = items.len() == needed.names.len();
        if !is_complete || !self.load_all(items.values_mut()).await? {
            return Ok(None);
        }
        let items = items.into_iter();
        let found = items.map(|(name, item)| Ok((name, task_item::found_child(item)?)));
        found.collect::<Result<_, StoreError>>().map(Some)
    }
}
