//! Removes tasks and threads with all their items.

use super::pushes::MARK;
use super::{Records, idempotency, large_value, task_item, task_pointers, threads};
use crate::item::{INCARNATION, VERSION, count};
use crate::keys::{self, Key, META, PK, SK};
use crate::table::{Comparison, Condition, Item, Query, Statement};
use a2a_lambda_model::store::{StoreError, ThreadRecord};
use a2a_lambda_model::task::TaskRecord;

/// Objects of one list.
const LISTED: usize = 1000;

fn is_same(current: &TaskRecord, record: &TaskRecord) -> bool {
    current.owner == record.owner
        && current.version == record.version
        && current.incarnation == record.incarnation
}

/// Removes an item if it is still the one that was seen. A later task with this id may already
/// have replaced it. The attribute distinguishes the two.
fn remove_if_as_seen(item: &Item) -> Result<Statement, StoreError> {
    let removal = Statement::delete(Key::of(item)?);
    let mark = [MARK, INCARNATION]
        .into_iter()
        .find_map(|name| Some((name, item.get(name)?)));
    Ok(match mark {
        Some((name, value)) => removal.when(Condition::is(name, Comparison::Equal, value.clone())),
        None => removal,
    })
}

impl Records {
    /// Removes everything stored for a task, if it is stored as in `record`. The
    /// children go first, then the idempotency keys that the record knows and that
    /// still name the task, and the deciding item last, so that an interrupted
    /// removal can be repeated. The caller has ended the task's life before, so that
    /// no reader sees it. Returns `true` if nothing of the task is left; `false` if
    /// another write or the task of another owner is stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be there, and the same
    /// call may be made again.
    pub async fn remove_task(&self, record: &TaskRecord) -> Result<bool, StoreError> {
        let meta = keys::task(&record.key());
        let query = Query {
            only: [PK, SK, INCARNATION, MARK].map(str::to_owned).into(),
            ..keys::task_items(&record.key()).into()
        };
        loop {
            let items = self.table.query(&query).await?.items;
            // While the task is stored, the items seen are its own or older ones. Items of a
            // later task with this id come only afterwards and differ.
            match self.own_item(&record.key()).await? {
                None => return Ok(true),
                Some(current) if !is_same(&current, record) => return Ok(false),
                Some(_) => {}
            }
            let beside = items.iter().filter(|it| it.get(SK) != Some(&META.into()));
            let beside: Vec<&Item> = beside.collect();
            if beside.is_empty() {
                break;
            }
            for item in beside {
                self.table.try_write(remove_if_as_seen(item)?).await?;
            }
        }
        for key in &record.keys {
            self.table
                .try_write(idempotency::no_key(record, key))
                .await?;
        }
        let as_stored = Condition::All(vec![
            task_item::has_version(record.version),
            task_item::is_same(&record.incarnation),
            task_item::is_owned_by(&record.owner),
        ]);
        // Both in one transaction: an interrupted deletion of the context then finds the
        // task by its pointer, or neither is left.
        let mut last = vec![Statement::delete(meta).when(as_stored)];
        last.extend(task_pointers::no_pointer(record));
        let is_removed = self.table.try_write(last).await?;
        // A repeated call finds no item, which is success.
        Ok(is_removed || self.own_item(&record.key()).await?.is_none())
    }

    /// Removes what is stored beside the deleted thread in `record`: its state and
    /// the store's objects for it, but nothing of a later write. A repeat removes
    /// what is left.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` some of it may be left.
    pub async fn forget_state(&self, record: &ThreadRecord) -> Result<(), StoreError> {
        let thread = threads::key(record);
        let earlier = Condition::is(VERSION, Comparison::AtMost, count(record.version));
        self.table
            .try_write(Statement::delete(keys::thread_state(&thread)).when(earlier))
            .await?;
        let Some(blobs) = &self.blobs else {
            return Ok(());
        };
        let below = large_value::below(&thread);
        let mut after: Option<String> = None;
        loop {
            let names = blobs.keys(&below, after.as_deref(), LISTED).await?;
            // An object of a later write may belong to the next thread with this id.
            let is_over = |name: &String| {
                large_value::written_at(name).is_none_or(|at| at <= record.updated_at)
            };
            let old: Vec<String> = names.iter().filter(|name| is_over(name)).cloned().collect();
            if !old.is_empty() {
                blobs.remove(&old).await?;
            }
            if names.len() < LISTED {
                return Ok(());
            }
            after = names.last().cloned();
        }
    }

    /// Removes a thread that is stored as in `record`, after what is stored beside
    /// it. Returns `true` if nothing of it is left; `false` if another write is
    /// stored.
    ///
    /// # Errors
    /// [`StoreError`]; after `Unavailable` the thread may or may not be stored.
    pub async fn remove_thread(&self, record: &ThreadRecord) -> Result<bool, StoreError> {
        // The `META` item goes last: an interrupted removal is found by it and repeated.
        self.forget_state(record).await?;
        self.remove_pointers(record).await?;
        let key = keys::thread(&threads::key(record));
        let removal = Statement::delete(key.clone()).when(task_item::has_version(record.version));
        // A repeated call finds no item, which is success.
        Ok(self.table.try_write(removal).await? || self.item(key).await?.is_none())
    }
}
