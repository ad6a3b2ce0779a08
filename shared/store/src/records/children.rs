//! Reads and writes the child items of a task.
//!
//! The commit that adds children writes them in its transaction, under names that no other
//! commit of the task uses. Each child holds the task's incarnation and the version of its
//! commit. A reader ignores children that the `META` item does not name. They belong to an
//! earlier task of the same id, or to output that a restart has taken back. A projection reads
//! only the children that a response shows, and no more bytes than its budget allows.

use super::large_value;
use super::task_item::{self, to_task};
use super::{RecordReader, Records, TRIES, TornReads};
use crate::item::{self, BODY, INCARNATION, TTL, VERSION, WRITE, count};
use crate::keys::{self, META, PK, SK};
use crate::table::{self, Item, Query, Range, Statement};
use a2a_lambda_model::store::{BlobOwner, ProjectedTask, Projection, StoreError, Tail, TaskWrite};
use a2a_lambda_model::stored::{self, Child, ChildName, FoundChild, NeededChildren};
use a2a_lambda_model::task::{LoggedEvent, Owner, TaskId, TaskKey, TaskRecord, Timestamp, WriteId};
use std::collections::BTreeMap;

impl RecordReader {
    /// Adds the children to the head of a task. `None` if another commit was made
    /// meanwhile.
    ///
    /// # Errors
    /// [`StoreError`] when the table does not answer or an item is corrupt.
    pub(super) async fn join_children(
        &self,
        mut record: TaskRecord,
    ) -> Result<Option<TaskRecord>, StoreError> {
        if record.layout.is_empty() {
            return Ok(Some(record));
        }
        let mut children = self.children(&record, keys::children(), &[]).await?;
        children.retain(|name, _| stored::names(&record, *name));
        let Some(children) = self.contents(children).await? else {
            return Ok(None);
        };
        Ok(stored::join(&mut record, &children)?.then_some(record))
    }

    /// The content of children; `None` if an object of one is gone.
    async fn contents(
        &self,
        mut children: BTreeMap<ChildName, Item>,
    ) -> Result<Option<BTreeMap<ChildName, FoundChild>>, StoreError> {
        if !self.load_all(children.values_mut()).await? {
            return Ok(None);
        }
        let contents = children.into_iter().map(|(name, mut item)| {
            let version = item::number(&item, VERSION)?;
            let content = item::take_body(&mut item)?;
            Ok((name, FoundChild { version, content }))
        });
        contents.collect::<Result<_, StoreError>>().map(Some)
    }

    /// The children of a task in this range, with the attributes `only` or all.
    pub(super) async fn children(
        &self,
        record: &TaskRecord,
        range: Range,
        only: &[&str],
    ) -> Result<BTreeMap<ChildName, Item>, StoreError> {
        let query = Query {
            range,
            filter: Some(task_item::is_same(&record.incarnation)),
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            ..keys::task_items(&record.key()).into()
        };
        let mut children = BTreeMap::new();
        for item in table::query_all(&*self.table, query).await? {
            if let Some(name) = keys::child_of(item::text(&item, SK)?) {
                children.insert(name, item);
            }
        }
        Ok(children)
    }

    /// The same, with only their keys, versions and objects.
    pub(super) async fn child_keys(
        &self,
        record: &TaskRecord,
    ) -> Result<BTreeMap<ChildName, Item>, StoreError> {
        let only = [PK, SK, VERSION, large_value::KEY];
        self.children(record, keys::children(), &only).await
    }

    /// The task's state and the events after number `after`, read consistently in one query;
    /// `None` as for [`RecordReader::load`]. `u64::MAX` requests no events. Each stream
    /// that follows a task polls this method.
    ///
    /// # Errors
    /// [`StoreError`] when the store does not answer or the item is corrupt.
    pub async fn tail(
        &self,
        owner: &Owner,
        id: &TaskId,
        after: u64,
        now: Timestamp,
    ) -> Result<Option<Tail>, StoreError> {
        let task = TaskKey::new(owner, id);
        let mut reads = TornReads::default();
        for _ in 0..TRIES {
            let log = self.read_log(owner, &task, after).await?;
            let is_visible = |head: &TaskRecord| &head.owner == owner && !head.is_expired(now);
            let Some((head, children)) = log.filter(|(head, _)| is_visible(head)) else {
                return Ok(None);
            };
            reads.note(head.version);
            let events = self.events_of(&head, children).await;
            let Some(events) = reads.result(events)? else {
                continue;
            };
            let mut tail = Tail::of(&head, after);
            if after >= head.layout.events_moved() {
                return Ok(Some(tail));
            }
            let mut events: Vec<LoggedEvent> =
                events.into_iter().filter(|it| it.seq > after).collect();
            events.append(&mut tail.events);
            // A child that a commit wrote between two pages of the read leaves a gap in the event
            // numbers.
            let numbers = after + 1..=tail.last_seq;
            if events.iter().map(|event| event.seq).eq(numbers) {
                tail.events = events;
                return Ok(Some(tail));
            }
        }
        Err(reads.error())
    }

    /// One read of the log: the head of the task and its children that have some of it.
    async fn read_log(
        &self,
        owner: &Owner,
        task: &TaskKey,
        after: u64,
    ) -> Result<Option<(TaskRecord, Vec<Item>)>, StoreError> {
        let query = Query {
            range: keys::log_after(after),
            ..keys::task_items(task).into()
        };
        let mut items = table::query_all(&*self.table, query).await?;
        // `META` sorts behind the children, so it is the last item.
        let Some(meta) = items.pop() else {
            return Ok(None);
        };
        if item::text(&meta, SK)? != META || !task_item::may_belong_to(&meta, owner) {
            return Ok(None);
        }
        let head = to_task(&meta)?;
        let mut children = Vec::new();
        for item in items {
            let mine = item::text(&item, INCARNATION)? == head.incarnation.as_str();
            let name = keys::child_of(item::text(&item, SK)?);
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
        let (owner, task) = (head.owner.clone(), head.key());
        let (mut bytes, mut reads) = (0, TornReads::default());
        for _ in 0..TRIES {
            if !head.is_partial {
                return Ok(Some(ProjectedTask {
                    record: head,
                    complete: true,
                    read: 0,
                }));
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
            reads.note(head.version);
            let current = self.own_item(&task).await?;
            match current.filter(|it| it.owner == owner && !it.is_expired(now)) {
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
            let state = head.layout.state.as_ref();
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
        match items.len() == needs.names.len() {
            true => self.contents(items).await,
            false => Ok(None),
        }
    }
}

impl Records {
    /// The statements for a commit's new children. Stores large children as objects first,
    /// so that the commit never names an object that does not exist.
    ///
    /// # Errors
    /// [`StoreError`] when an object cannot be stored.
    pub(super) async fn child_statements(
        &self,
        write: &TaskWrite,
        children: Vec<Child>,
    ) -> Result<Vec<Statement>, StoreError> {
        let record = &write.record;
        let owner = BlobOwner::Task(record.key());
        let commit = record.write_ids.last().map(WriteId::as_str);
        let mut statements = Vec::new();
        for Child { name, content } in children {
            let key = keys::child(&record.key(), name);
            let mut item = item::of(vec![
                (VERSION, Some(count(record.version))),
                (INCARNATION, Some(record.incarnation.as_str().into())),
                (WRITE, Some(commit.unwrap_or_default().into())),
                (TTL, Some(item::seconds(record.kept_until))),
                (BODY, Some(item::content(content))),
            ]);
            let object = large_value::of_task(record, key.sort());
            self.spill(&mut item, &owner, &object).await?;
            let put = Statement::put(key, item);
            statements.push(match name {
                // The condition of the task covers it, since both are in one transaction.
                ChildName::State => put,
                // It never replaces a child of the same task. It may replace one that an
                // earlier task with this id has left.
                ChildName::Moved { .. } => put.when(task_item::is_another(&record.incarnation)),
            });
        }
        Ok(statements)
    }
}
