//! Reads and writes the child items of a task.
//!
//! The commit that adds children writes them in its transaction, under names that no other
//! commit of the task uses. Each child holds the task's incarnation and the version of its
//! commit. A reader ignores children that the `META` item does not name. They belong to an
//! earlier task of the same id, or to output that a restart has taken back.

use super::conditional_write::ConditionalWrite;
use super::item::{self, Item};
use super::key;
use super::large_value::{self, ValueOwner};
use super::outcome::{self, TRIES, TornReads};
use super::store::DynamoStore;
use a2a_lambda_model::store::{StoreError, Tail, TaskWrite};
use a2a_lambda_model::stored::{self, Child, ChildName, FoundChild};
use a2a_lambda_model::task::{LoggedEvent, Owner, TaskId, TaskKey, TaskRecord};
use std::collections::HashMap;

/// The attributes for the key of a child, its version and its object.
const KEYS: &str = "PK, SK, #version, #object";

impl DynamoStore {
    /// The statements for a commit's new children. Stores large children as objects first,
    /// so that the commit never names an object that does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when an object cannot be stored.
    pub(super) async fn child_statements(
        &self,
        write: &TaskWrite,
        children: Vec<Child>,
    ) -> Result<Vec<ConditionalWrite>, StoreError> {
        let record = &write.record;
        let (partition, value_owner) = (key::task(&record.key()), ValueOwner::Task(record.key()));
        let mut statements = Vec::new();
        for Child { place, text } in children {
            let sort = key::child(place);
            let mut item = item::key_of(&partition, &sort);
            for (name, value) in item::child(record, text) {
                item.insert(name.to_owned(), value);
            }
            let name = large_value::of_task(record, &sort);
            self.spill(
                &mut item,
                large_value::inline_max(place),
                &value_owner,
                &name,
            )
            .await?;
            statements.push(match place {
                // A value that is replaced as a whole. The condition of the task covers it, since
                // both are in one transaction.
                ChildName::Doc(_) => ConditionalWrite::child(item),
                ChildName::Parts(_) | ChildName::Events(_) | ChildName::History(_) => {
                    ConditionalWrite::new_child(item, record.incarnation().as_str())
                }
            });
        }
        Ok(statements)
    }

    /// Adds the children to the head of a task. `None` if another commit was made
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer or an item is corrupt.
    pub(super) async fn whole(
        &self,
        partition: &str,
        mut record: TaskRecord,
    ) -> Result<Option<TaskRecord>, StoreError> {
        if record.layout().is_empty() {
            return Ok(Some(record));
        }
        let mut children = Vec::new();
        let mut start = None;
        loop {
            let (items, next) = self.family(partition, &record, false, start).await?;
            for item in items {
                let place = key::place_of(item::string(&item, key::SK)?);
                if let Some(place) = place.filter(|place| stored::names(&record, *place)) {
                    children.push((place, item));
                }
            }
            start = next;
            if start.is_none() {
                break;
            }
        }
        let items = children.iter_mut().map(|(_, item)| item);
        if !self.load_all(items).await? {
            return Ok(None);
        }
        let found = children
            .into_iter()
            .map(|(place, item)| Ok((place, found_in(item)?)));
        let found = found.collect::<Result<_, StoreError>>()?;
        Ok(stored::join(&mut record, &found)?.then_some(record))
    }

    /// A page of a task's children, whole or only their [`KEYS`], and where the next page
    /// starts.
    pub(super) async fn family(
        &self,
        partition: &str,
        record: &TaskRecord,
        keys: bool,
        start: Option<Item>,
    ) -> Result<(Vec<Item>, Option<Item>), StoreError> {
        let mut names = HashMap::from([("#incarnation".to_owned(), item::INCARNATION.to_owned())]);
        if keys {
            names.insert("#version".to_owned(), item::VERSION.to_owned());
            names.insert("#object".to_owned(), large_value::KEY.to_owned());
        }
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :last")
            .filter_expression("#incarnation = :mine")
            .expression_attribute_values(":pk", item::text(partition))
            .expression_attribute_values(":first", item::text(key::FIRST_CHILD))
            .expression_attribute_values(":last", item::text(key::STATE))
            .expression_attribute_values(":mine", item::text(record.incarnation().as_str()))
            .set_projection_expression(keys.then(|| KEYS.to_owned()))
            .set_expression_attribute_names(Some(names))
            .set_exclusive_start_key(start)
            .send()
            .await
            .map_err(|error| outcome::read_error(&error))?;
        Ok((found.items.unwrap_or_default(), found.last_evaluated_key))
    }

    /// Extends the TTL of the existing children to the time that this commit demands. This
    /// happens outside of the commit: if the commit fails, a longer TTL does no harm.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer.
    pub(super) async fn keep_children(&self, record: &TaskRecord) -> Result<(), StoreError> {
        let renewed = record
            .layout()
            .kept
            .filter(|kept| kept.version == record.version());
        let Some(kept) = renewed.filter(|_| stored::has_older_children(record)) else {
            return Ok(());
        };
        let partition = key::task(&record.key());
        let mut start = None;
        loop {
            let (items, next) = self.family(&partition, record, true, start).await?;
            for item in items {
                let sort = item::string(&item, key::SK)?;
                if key::place_of(sort).is_some() {
                    let until = kept.until.ttl_seconds();
                    // A child that is gone, or has a later TTL, needs no write.
                    self.write_once(ConditionalWrite::keep(&partition, sort, until))
                        .await?;
                }
            }
            start = next;
            if start.is_none() {
                return Ok(());
            }
        }
    }

    /// The tail of a task's log: the batches after event number `after` and the head of the
    /// task, in one read. `None` if there is no task.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer or an item is corrupt.
    pub(super) async fn log_after(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
    ) -> Result<Option<(TaskRecord, Tail)>, StoreError> {
        let partition = key::task(&TaskKey::new(owner, id));
        let mut reads = TornReads::default();
        for tries in 0..TRIES {
            let log = self.read_log(owner, &partition, after).await?;
            let Some((head, batches)) = log else {
                return Ok(None);
            };
            reads.note(head.version());
            let events = self.events_of(batches).await;
            let Some(batches) = reads.result(events)? else {
                outcome::pause(tries).await;
                continue;
            };
            let moved = head.layout().events_moved();
            let mut tail = Tail::of(&head, after);
            if after >= moved {
                return Ok(Some((head, tail)));
            }
            let batches = batches.into_iter().filter(|it| it.seq > after);
            let mut events: Vec<LoggedEvent> = batches.filter(|it| it.seq <= moved).collect();
            events.append(&mut tail.events);
            // A batch that a commit moved between two pages of the read leaves a gap in the
            // event numbers.
            let expected = after + 1..=tail.last_seq;
            if events.iter().map(|event| event.seq).eq(expected) {
                tail.events = events;
                return Ok(Some((head, tail)));
            }
            outcome::pause(tries).await;
        }
        Err(reads.error())
    }

    /// One read of the log: the head of the task and its batches.
    async fn read_log(
        &self,
        owner: &Owner,
        partition: &str,
        after: u64,
    ) -> Result<Option<(TaskRecord, Vec<Item>)>, StoreError> {
        let first = key::child(ChildName::Events(after.saturating_add(1)));
        let mut items = Vec::new();
        let mut start = None;
        loop {
            let found = self
                .client
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :meta")
                .expression_attribute_values(":pk", item::text(partition))
                .expression_attribute_values(":first", item::text(&first))
                .expression_attribute_values(":meta", item::text(key::META))
                .set_exclusive_start_key(start)
                .send()
                .await
                .map_err(|error| outcome::read_error(&error))?;
            items.extend(found.items.unwrap_or_default());
            start = found.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        // `META` sorts behind all `EVT#` keys, so it is the last item.
        let Some(meta) = items.pop() else {
            return Ok(None);
        };
        if item::string(&meta, key::SK)? != key::META {
            return Ok(None);
        }
        if !item::may_belong_to(&meta, owner) {
            return Ok(None);
        }
        let head = item::to_task(&meta)?;
        let mut batches = Vec::new();
        for item in items {
            let mine = item::string(&item, item::INCARNATION)? == head.incarnation().as_str();
            if mine && item::integer::<u64>(&item, item::VERSION)? <= head.version() {
                batches.push(item);
            }
        }
        Ok(Some((head, batches)))
    }

    /// The events of batches; `None` if the task changed or was removed meanwhile.
    async fn events_of(
        &self,
        mut batches: Vec<Item>,
    ) -> Result<Option<Vec<LoggedEvent>>, StoreError> {
        if !self.load_all(batches.iter_mut()).await? {
            return Ok(None);
        }
        let mut events = Vec::new();
        for item in batches {
            events.append(&mut stored::events_of(&found_in(item)?.text)?);
        }
        Ok(Some(events))
    }
}

/// The content and the version of a child item.
pub(super) fn found_in(mut item: Item) -> Result<FoundChild, StoreError> {
    Ok(FoundChild {
        version: item::integer(&item, item::VERSION)?,
        text: item::take_text(&mut item, item::BODY)?,
    })
}
