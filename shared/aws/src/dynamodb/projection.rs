//! Reads heads of tasks, and projections: only the child items that a response shows, and
//! no more bytes than the response budget allows.

use super::item::{self, Item};
use super::outcome::{self, TRIES, TornReads};
use super::store::DynamoStore;
use super::{children, key, list};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{ProjectedTask, Projection, StoreError};
use a2a_lambda_model::stored::{self, ChildName, FoundChild, NeededChildren};
use a2a_lambda_model::task::{TaskKey, TaskRecord, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

impl DynamoStore {
    /// The heads of `tasks`; see [`a2a_lambda_model::store::ReadTasks::heads`].
    pub(super) async fn heads_of(
        &self,
        tasks: &[OpenTask],
        now: Timestamp,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        // `BatchGetItem` refuses a request that names a key twice.
        let keys = tasks
            .iter()
            .map(|open| TaskKey::new(&open.owner, &open.task));
        let partitions: BTreeSet<String> = keys.map(|task| key::task(&task)).collect();
        let keys = partitions.iter().map(|it| item::key_of(it, key::META));
        let keys: Vec<Item> = keys.collect();
        let mut heads = Vec::new();
        for chunk in keys.chunks(list::BATCH) {
            let items = list::batch(&self.client, &self.table, chunk.to_vec()).await?;
            heads.extend(list::readable(&items, item::to_task));
        }
        let asked = |head: &TaskRecord| {
            let same = |open: &OpenTask| open.owner == *head.owner() && open.task == *head.id();
            tasks.iter().any(same) && !head.expired(now)
        };
        heads.retain(asked);
        Ok(heads)
    }

    /// Adds what is wanted to a head; see [`a2a_lambda_model::store::ReadTasks::project`].
    pub(super) async fn project_task(
        &self,
        mut head: TaskRecord,
        wanted: Projection,
        now: Timestamp,
    ) -> Result<Option<ProjectedTask>, StoreError> {
        let (owner, task) = (head.owner().clone(), head.key());
        let (mut read, mut reads) = (0, TornReads::default());
        for tries in 0..TRIES {
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
            outcome::pause(tries).await;
            let found = self.own_item(&task).await?;
            match found.filter(|it| *it.owner() == owner && !it.expired(now)) {
                Some(fresh) => head = fresh,
                None => return Ok(None),
            }
        }
        Err(reads.error())
    }

    /// The children that are needed; `None` if one is missing or was replaced. The head says what
    /// each of them has, so the store reads no object that does not fit.
    async fn needed_children(
        &self,
        head: &TaskRecord,
        needed: &NeededChildren,
    ) -> Result<Option<BTreeMap<ChildName, FoundChild>>, StoreError> {
        let partition = key::task(&head.key());
        let mut items = BTreeMap::new();
        if needed.names.contains(&ChildName::State)
            && let Some(item) = self.item(&partition, key::STATE).await?
        {
            let version: u64 = item::integer(&item, item::VERSION)?;
            let state = head.layout().state.as_ref();
            if state.is_some_and(|state| state.version == version) {
                items.insert(ChildName::State, item);
            }
        }
        let mut moved = needed.names.iter().filter(|it| **it != ChildName::State);
        if let Some(first) = moved.next() {
            let last = moved.next_back().unwrap_or(first);
            let moved = self.children(head, Some((*first, *last)), false).await?;
            items.extend(
                moved
                    .into_iter()
                    .filter(|(name, _)| needed.names.contains(name)),
            );
        }
        let is_complete = items.len() == needed.names.len();
        if !is_complete || !self.load_all(items.values_mut()).await? {
            return Ok(None);
        }
        let items = items.into_iter();
        let found = items.map(|(name, item)| Ok((name, children::found_in(item)?)));
        found.collect::<Result<_, StoreError>>().map(Some)
    }
}
