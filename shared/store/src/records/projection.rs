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
        projection: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        let (owner, task) = (head.owner().clone(), head.key());
        let (mut bytes, mut reads) = (0, TornReads::default());
        for _ in 0..TRIES {
            if !head.is_partial() {
                return Ok(Some(ProjectedTask::of_whole(head)));
            }
            let needs = stored::needs(&head, projection);
            bytes += needs.bytes;
            let children = self.needed_children(&head, &needs).await;
            if let Some(children) = reads.result(children)? {
                stored::join(&mut head, &children)?;
                return Ok(Some(ProjectedTask {
                    record: head,
                    complete: needs.complete,
                    read: bytes,
                }));
            }
            // Another commit was made meanwhile, or a child is missing.
            reads.note(head.version());
            let current = self.own_item(&task).await?;
            match current.filter(|it| *it.owner() == owner && !it.expired(now)) {
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
        needs: &NeededChildren,
    ) -> Result<Option<BTreeMap<ChildName, FoundChild>>, StoreError> {
        let mut items = BTreeMap::new();
        let state = keys::child(&head.key(), ChildName::State);
        if needs.names.contains(&ChildName::State)
            && let Some(item) = self.item(state).await?
        {
            let version: u64 = item::number(&item, VERSION)?;
            let state = head.layout().state.as_ref();
            if state.is_some_and(|state| state.version == version) {
                items.insert(ChildName::State, item);
            }
        }
        let mut names = needs.names.iter().filter(|it| **it != ChildName::State);
        if let Some(first) = names.next() {
            let last = names.next_back().unwrap_or(first);
            let range = keys::children_between(*first, *last);
            let children = self.children(head, range, &[]).await?.into_iter();
            items.extend(children.filter(|(name, _)| needs.names.contains(name)));
        }
        let is_complete = items.len() == needs.names.len();
        if !is_complete || !self.load_all(items.values_mut()).await? {
            return Ok(None);
        }
        let items = items.into_iter();
        let children = items.map(|(name, item)| Ok((name, task_item::found_child(item)?)));
        children.collect::<Result<_, StoreError>>().map(Some)
    }
}
