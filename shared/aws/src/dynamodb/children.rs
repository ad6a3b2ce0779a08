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
        for Child { name, content } in children {
            let sort = key::child(name);
            let mut item = item::key_of(&partition, &sort);
            for (name, value) in item::child(record, content) {
                item.insert(name.to_owned(), value);
            }
            let object = large_value::of_task(record, &sort);
            self.spill(&mut item, &value_owner, &object).await?;
            statements.push(match name {
                // The condition of the task covers it, since both are in one transaction.
                ChildName::State => ConditionalWrite::child(item),
                ChildName::Moved { .. } => {
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
        mut record: TaskRecord,
    ) -> Result<Option<TaskRecord>, StoreError> {
        if record.layout().is_empty() {
            return Ok(Some(record));
        }
        let mut children = self.children(&record, None, false).await?;
        children.retain(|(name, _)| stored::names(&record, *name));
        let items = children.iter_mut().map(|(_, item)| item);
        if !self.load_all(items).await? {
            return Ok(None);
        }
        let found = children
            .into_iter()
            .map(|(name, item)| Ok((name, found_in(item)?)));
        let found = found.collect::<Result<_, StoreError>>()?;
        Ok(stored::join(&mut record, &found)?.then_some(record))
    }

    /// The children of a task, or those between two names; whole or only their [`KEYS`].
    pub(super) async fn children(
        &self,
        record: &TaskRecord,
        between: Option<(ChildName, ChildName)>,
        keys: bool,
    ) -> Result<Vec<(ChildName, Item)>, StoreError> {
        let (first, last) = match between {
            Some((first, last)) => (key::child(first), key::child(last)),
            None => (key::FIRST_CHILD.to_owned(), key::STATE.to_owned()),
        };
        let mut names = HashMap::from([("#incarnation".to_owned(), item::INCARNATION.to_owned())]);
        if keys {
            names.insert("#version".to_owned(), item::VERSION.to_owned());
            names.insert("#object".to_owned(), large_value::KEY.to_owned());
        }
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("PK = :pk AND SK BETWEEN :first AND :last")
            .filter_expression("#incarnation = :mine")
            .expression_attribute_values(":pk", item::text(key::task(&record.key())))
            .expression_attribute_values(":first", item::text(first))
            .expression_attribute_values(":last", item::text(last))
            .expression_attribute_values(":mine", item::text(record.incarnation().as_str()))
            .set_projection_expression(keys.then(|| KEYS.to_owned()))
            .set_expression_attribute_names(Some(names));
        let mut children = Vec::new();
        let mut start = None;
        loop {
            let page = query.clone().set_exclusive_start_key(start).send();
            let page = page.await.map_err(|error| outcome::read_error(&error))?;
            for item in page.items.unwrap_or_default() {
                if let Some(name) = key::child_of(item::string(&item, key::SK)?) {
                    children.push((name, item));
                }
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(children);
            }
        }
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
        for (name, _) in self.children(record, None, true).await? {
            let until = kept.until.ttl_seconds();
            // A child that is gone, or has a later TTL, needs no write.
            self.write_once(ConditionalWrite::keep(&partition, &key::child(name), until))
                .await?;
        }
        Ok(())
    }

    /// The tail of a task's log: the children after event number `after` and the head of the
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
            let Some((head, children)) = log else {
                return Ok(None);
            };
            reads.note(head.version());
            let moved = self.events_of(&head, children).await;
            let Some(moved) = reads.result(moved)? else {
                outcome::pause(tries).await;
                continue;
            };
            let mut tail = Tail::of(&head, after);
            if after >= head.layout().events_moved() {
                return Ok(Some((head, tail)));
            }
            let mut events: Vec<LoggedEvent> =
                moved.into_iter().filter(|it| it.seq > after).collect();
            events.append(&mut tail.events);
            // A child that a commit wrote between two pages of the read leaves a gap in the event
            // numbers.
            let expected = after + 1..=tail.last_seq;
            if events.iter().map(|event| event.seq).eq(expected) {
                tail.events = events;
                return Ok(Some((head, tail)));
            }
            outcome::pause(tries).await;
        }
        Err(reads.error())
    }

    /// One read of the log: the head of the task and its children that have some of it.
    async fn read_log(
        &self,
        owner: &Owner,
        partition: &str,
        after: u64,
    ) -> Result<Option<(TaskRecord, Vec<Item>)>, StoreError> {
        let first = key::events_from(after.saturating_add(1));
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
        // `META` sorts behind the children, so it is the last item.
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
        let mut children = Vec::new();
        for item in items {
            let mine = item::string(&item, item::INCARNATION)? == head.incarnation().as_str();
            let name = key::child_of(item::string(&item, key::SK)?);
            if mine && name.is_some_and(|name| stored::names(&head, name)) {
                children.push(item);
            }
        }
        Ok(Some((head, children)))
    }

    /// The events in children; `None` if the task changed or was removed meanwhile.
    async fn events_of(
        &self,
        head: &TaskRecord,
        mut children: Vec<Item>,
    ) -> Result<Option<Vec<LoggedEvent>>, StoreError> {
        if !self.load_all(children.iter_mut()).await? {
            return Ok(None);
        }
        let mut events = Vec::new();
        for item in &children {
            events.append(&mut stored::events_of(head, &item::body(item)?)?);
        }
        Ok(Some(events))
    }
}

/// The content and the version of a child item.
pub(super) fn found_in(mut item: Item) -> Result<FoundChild, StoreError> {
    Ok(FoundChild {
        version: item::integer(&item, item::VERSION)?,
        content: item::take_body(&mut item)?,
    })
}
