//! Reads heads of tasks, and projections: only the child items that a response shows, and
//! no more bytes than the response budget allows.

use super::item::{self, Item};
use super::outcome::{self, TRIES, TornReads};
use super::store::DynamoStore;
use super::{children, key, large_value, list};
use a2a_lambda_model::store::queue::OpenTask;
use a2a_lambda_model::store::{ProjectedTask, Projection, StoreError};
use a2a_lambda_model::stored::{self, CHILD_MIN, ChildName, FoundChild, NeededChildren};
use a2a_lambda_model::task::{TaskKey, TaskRecord, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a read of children.
#[derive(Default)]
struct ChildReads {
    /// The child items that fit, some of them still without their content.
    items: BTreeMap<ChildName, Item>,
    /// The children with their content.
    found: BTreeMap<ChildName, FoundChild>,
    /// Bytes that may still be read.
    left: usize,
    /// Bytes read, including those that the projection does not use.
    read: usize,
    /// Whether the response budget left something out.
    short: bool,
}

/// Children of one kind, by the number in their sort keys: a version, and for a batch of events
/// its last event.
struct ChildRange {
    first: ChildName,
    last: ChildName,
    newest_first: bool,
}

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
            let needs = stored::needs(&head, wanted.history_length, wanted.artifacts);
            let reading = self.read_some(&head, &needs, wanted.bytes).await;
            let reading = reads.result(reading.map(Some))?.unwrap_or_default();
            read += reading.read;
            if reading.short || needs.are_met(&reading.found) {
                stored::join_some(&mut head, &reading.found)?;
                return Ok(Some(ProjectedTask {
                    record: head,
                    complete: !reading.short,
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

    async fn read_some(
        &self,
        head: &TaskRecord,
        needs: &NeededChildren,
        bytes: usize,
    ) -> Result<ChildReads, StoreError> {
        let mut reading = self.read_items(head, needs, bytes).await?;
        self.fetch(&mut reading).await?;
        Ok(reading)
    }

    /// Reads the items of the children that are needed. Each item holds the size of its
    /// content, so the store knows what fits before it reads an object.
    async fn read_items(
        &self,
        head: &TaskRecord,
        needs: &NeededChildren,
        bytes: usize,
    ) -> Result<ChildReads, StoreError> {
        let partition = key::task(&head.key());
        let mut reading = ChildReads {
            left: bytes,
            ..ChildReads::default()
        };
        for doc in &needs.docs {
            if reading.left == 0 {
                reading.short = true;
                return Ok(reading);
            }
            let place = ChildName::Doc(*doc);
            if let Some(item) = self.item(&partition, &key::child(place)).await? {
                reading.count(&item)?;
                let version: u64 = item::integer(&item, item::VERSION)?;
                let apart = head.layout().docs.get(doc);
                if apart.is_some_and(|apart| apart.version == version) {
                    reading.take(place, item)?;
                }
            }
        }
        if let (Some(last), Some(first)) = (needs.history.first(), needs.history.last()) {
            let range = ChildRange {
                first: ChildName::History(*first),
                last: ChildName::History(*last),
                newest_first: true,
            };
            self.read_range(&partition, head, &range, needs, &mut reading)
                .await?;
        }
        if let (Some(first), Some(last)) = (needs.parts.first(), needs.parts.last()) {
            let range = ChildRange {
                first: ChildName::Parts(*first),
                last: ChildName::Parts(*last),
                newest_first: false,
            };
            self.read_range(&partition, head, &range, needs, &mut reading)
                .await?;
        }
        if let (Some(first), Some(last)) = (needs.batches.first(), needs.batches.last()) {
            let range = ChildRange {
                first: ChildName::Events(*first),
                last: ChildName::Events(*last),
                newest_first: false,
            };
            self.read_range(&partition, head, &range, needs, &mut reading)
                .await?;
        }
        Ok(reading)
    }

    /// Reads the objects of the children that fit, in parallel. If an object is gone, a later
    /// commit has replaced the child; it then counts as missing.
    async fn fetch(&self, reading: &mut ChildReads) -> Result<(), StoreError> {
        let mut items = std::mem::take(&mut reading.items);
        self.load_all(items.values_mut()).await?;
        items.retain(|_, item| item.contains_key(item::BODY));
        for (place, item) in items {
            if item.contains_key(large_value::KEY) {
                reading.read += large_value::size_of(&item)?;
            }
            reading.found.insert(place, children::found_in(item)?);
        }
        Ok(())
    }

    /// Reads children in order, up to the first one that exceeds the budget.
    async fn read_range(
        &self,
        partition: &str,
        head: &TaskRecord,
        range: &ChildRange,
        needs: &NeededChildren,
        reading: &mut ChildReads,
    ) -> Result<(), StoreError> {
        let mut start = None;
        loop {
            if reading.left == 0 {
                reading.short = true;
                return Ok(());
            }
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :last")
                .filter_expression("#incarnation = :mine")
                .expression_attribute_names("#incarnation", item::INCARNATION)
                .expression_attribute_values(":pk", item::text(partition))
                .expression_attribute_values(":first", item::text(key::child(range.first)))
                .expression_attribute_values(":last", item::text(key::child(range.last)))
                .expression_attribute_values(":mine", item::text(head.incarnation().as_str()))
                .scan_index_forward(!range.newest_first)
                .limit(page_of(reading.left))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            let items = found.items.unwrap_or_default();
            for item in &items {
                reading.count(item)?;
            }
            for item in items {
                let place = key::place_of(item::string(&item, key::SK)?);
                let Some(place) = place.filter(|place| needs.has(*place)) else {
                    continue;
                };
                if !reading.take(place, item)? {
                    return Ok(());
                }
            }
            start = found.last_evaluated_key;
            if start.is_none() {
                return Ok(());
            }
        }
    }
}

/// How many children a page may hold if `left` more bytes may be read.
///
/// Without a limit, DynamoDB would read 1 MB a page, however small `left` is. Each child
/// has more than [`CHILD_MIN`] bytes, so one page is enough if all are needed. A range may also
/// hold children that nobody needs: those that a restart took back, and batches without parts.
/// So a page holds at least 8. A page of 512 is 1 MB.
fn page_of(left: usize) -> i32 {
    let most = (left / CHILD_MIN).saturating_add(1).clamp(8, 512);
    i32::try_from(most).unwrap_or(i32::MAX)
}

impl ChildReads {
    /// Counts the content that the item itself holds.
    fn count(&mut self, item: &Item) -> Result<(), StoreError> {
        if item.contains_key(item::BODY) {
            self.read += item::string(item, item::BODY)?.len();
        }
        Ok(())
    }

    /// Keeps a child, unless it exceeds the budget. Then its object is not read.
    fn take(&mut self, place: ChildName, item: Item) -> Result<bool, StoreError> {
        let size = large_value::size_of(&item)?;
        if size > self.left {
            self.short = true;
            return Ok(false);
        }
        self.left -= size;
        self.items.insert(place, item);
        Ok(true)
    }
}
