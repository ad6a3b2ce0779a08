//! A layer in front of a table, for tests: it fails calls, loses replies, waits, counts, or lets
//! another writer go first.

use crate::store::StoreError;
use crate::store::keys::{self, Key, META};
use crate::store::records::to_task;
use crate::store::table::{
    Action, Item, ItemChange, Query, QueryPage, ReadTable, Statement, Table, Write, WriteResult,
};
use crate::task::TaskRecord;
use async_trait::async_trait;
use std::fmt::Debug;
use std::sync::Arc;

/// What a [`TableLayer`] does in place of the calls of the table behind it. A method that a test
/// does not write makes the call.
#[async_trait]
pub trait TableHooks: Debug + Send + Sync {
    /// In place of [`ReadTable::get`].
    ///
    /// # Errors
    /// As that method.
    async fn get(&self, table: &dyn Table, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        table.get(keys).await
    }

    /// In place of [`ReadTable::query`].
    ///
    /// # Errors
    /// As that method.
    async fn query(&self, table: &dyn Table, query: &Query) -> Result<QueryPage, StoreError> {
        table.query(query).await
    }

    /// In place of [`Table::write`].
    ///
    /// # Errors
    /// As that method.
    async fn write(&self, table: &dyn Table, write: Write) -> Result<WriteResult, StoreError> {
        table.write(write).await
    }
}

/// A table with hooks in front of another.
#[derive(Debug)]
pub struct TableLayer<H> {
    /// The table behind.
    pub table: Arc<dyn Table>,
    /// The hooks.
    pub hooks: H,
}

impl<H: TableHooks> TableLayer<H> {
    /// `hooks` in front of `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>, hooks: H) -> Arc<Self> {
        Arc::new(Self { table, hooks })
    }
}

#[async_trait]
impl<H: TableHooks> ReadTable for TableLayer<H> {
    async fn get(&self, keys: &[Key]) -> Result<Vec<Item>, StoreError> {
        self.hooks.get(&*self.table, keys).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.hooks.query(&*self.table, query).await
    }
}

#[async_trait]
impl<H: TableHooks> Table for TableLayer<H> {
    async fn write(&self, write: Write) -> Result<WriteResult, StoreError> {
        self.hooks.write(&*self.table, write).await
    }
}

/// What an item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A task's own item.
    Task,
    /// A child of a task.
    Child,
    /// A push config.
    Push,
    /// The progress of the deliveries of a push config.
    Delivery,
    /// A thread.
    Thread,
    /// The state of a thread.
    ThreadState,
    /// The pointer of a context to a task.
    Pointer,
    /// An idempotency key.
    IdempotencyKey,
    /// Anything else.
    Other,
}

impl ItemKind {
    /// The kind of the item at `key`.
    #[must_use]
    pub fn of(key: &Key) -> Self {
        let sort = key.sort();
        match (key.partition().split('#').nth(2), sort) {
            (Some("K"), META) => Self::Task,
            (Some("K"), _) if sort.ends_with("#SENT") => Self::Delivery,
            (Some("K"), _) if sort.starts_with("PUSH#") => Self::Push,
            (Some("K"), _) => Self::Child,
            (Some("C"), META) => Self::Thread,
            (Some("C"), "STATE") => Self::ThreadState,
            (Some("C"), _) => Self::Pointer,
            (Some("I"), _) => Self::IdempotencyKey,
            _ => Self::Other,
        }
    }
}

/// Whether one of `keys` is of this kind.
#[must_use]
pub fn reads(keys: &[Key], kind: ItemKind) -> bool {
    keys.iter().any(|key| ItemKind::of(key) == kind)
}

/// Whether a statement of `write` is for an item of this kind.
#[must_use]
pub fn writes(write: &Write, kind: ItemKind) -> bool {
    let mut statements = write.statements.iter();
    statements.any(|statement| ItemKind::of(&statement.key) == kind)
}

/// The task that a commit stores, with the content of its own item; `None` if `write` is no
/// commit. A heartbeat is none, and neither is the removal of a task.
#[must_use]
pub fn committed_task(write: &Write) -> Option<TaskRecord> {
    write.statements.iter().find_map(task_of)
}

fn task_of(statement: &Statement) -> Option<TaskRecord> {
    let mut item = statement.key.item();
    keys::task_key_of(statement.key.partition())?;
    match &statement.action {
        Action::Put(attributes) => item.extend(attributes.clone()),
        Action::Update(changes) => item.extend(changes.iter().filter_map(|change| match change {
            ItemChange::Set(path, value) => Some((path.name.clone(), value.clone())),
            _ => None,
        })),
        Action::Delete => {}
    }
    (ItemKind::of(&statement.key) == ItemKind::Task).then(|| to_task(&item).ok())?
}
