//! Keeps tasks, threads and push configs in a table.
//!
//! - here: who reads and who writes; `torn_reads`: reads that several items have to agree on
//! - `task_item`, `thread_item`, `push_item`: convert records to items and back
//! - `task_image`: the task in a record of the table's stream
//! - `large_value`: content that is too large for an item
//! - `tasks`: reads and writes of tasks; `commit`: the writes of one commit
//! - `children`: the child items of a task that has grown; `projection`: those that a
//!   response shows
//! - `lifetime`: how long the items beside a task are kept
//! - `idempotency`: the idempotency keys of sends
//! - `list`: a page of tasks from the list index
//! - `contexts`: a page of contexts; `task_pointers`: the tasks of one context
//! - `threads`, `pushes`: threads and push configs
//! - `removal`: removes tasks and threads with all their items
//! - `sweep`: what a sweep looks for
//!
//! Expiry is part of every condition, and is checked after every read. The table's own TTL only
//! cleans up. If the reply to a write is lost, the write is recognised by its write id.

mod children;
mod commit;
mod contexts;
mod idempotency;
mod large_value;
mod lifetime;
mod list;
mod projection;
mod push_item;
mod pushes;
mod removal;
mod sweep;
mod task_image;
mod task_item;
mod task_pointers;
mod tasks;
mod thread_item;
mod threads;
mod torn_reads;

pub use self::large_value::{ROOT, UPLOADS};
pub use self::removal::end_of_life;
pub use self::task_image::task_image;
pub use self::task_item::to_task;

use crate::brake::Brakes;
use crate::item::Attributes;
use crate::table::{ItemChange, ReadTable, Table};
use a2a_lambda_model::store::{Blobs, OBJECTS_AT_ONCE, ReadBlobs};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Reads tasks, threads and push configs. It holds a table that it can only read, so what holds
/// a reader writes nothing.
///
/// Each method takes an [`Owner`](a2a_lambda_model::task::Owner) and returns only what is that
/// owner's. What belongs to others looks absent.
///
/// ```compile_fail,E0599
/// use a2a_lambda_model::task::TaskRecord;
/// use a2a_lambda_store::records::RecordReader;
///
/// async fn removes(reader: RecordReader, task: &TaskRecord) {
///     let _ = reader.remove_task(task).await;
/// }
/// ```
#[derive(Clone)]
pub struct RecordReader {
    table: Arc<dyn ReadTable>,
    blobs: Option<Arc<dyn ReadBlobs>>,
    /// Permits to read an object of `blobs`. All reads share them, since one response may read
    /// several tasks in parallel, each with many objects.
    objects: Arc<Semaphore>,
}

impl RecordReader {
    /// The records in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn ReadTable>) -> Self {
        Self {
            table,
            blobs: None,
            objects: Arc::new(Semaphore::new(OBJECTS_AT_ONCE)),
        }
    }
}

/// Reads and writes tasks, threads and push configs: one transaction can hold all three.
///
/// It decides by versions and write ids only, never by the state of a task.
#[derive(Clone)]
pub struct Records {
    reader: RecordReader,
    table: Arc<dyn Table>,
    blobs: Option<Arc<dyn Blobs>>,
}

impl Records {
    /// The records in `table`.
    #[must_use]
    pub fn new(table: Arc<dyn Table>) -> Self {
        Self {
            reader: RecordReader::new(table.clone()),
            table,
            blobs: None,
        }
    }

    /// Keeps content above 32 KB as objects in `blobs`. Reads at most 16 of them at the same
    /// time. Without `blobs` a value that is too large for an item is refused.
    #[must_use]
    pub fn with_blobs(mut self, blobs: Arc<dyn Blobs>) -> Self {
        self.reader.blobs = Some(blobs.clone());
        self.blobs = Some(blobs);
        self
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> Arc<dyn Table> {
        Arc::clone(&self.table)
    }

    /// The same records, read only.
    #[must_use]
    pub const fn reader(&self) -> &RecordReader {
        &self.reader
    }

    /// The progress of the deliveries of the same push configs.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries {
            reader: self.reader.clone(),
            table: self.table(),
        }
    }

    /// What a sweep looks for in the same records.
    #[must_use]
    pub fn sweep(&self) -> Sweep {
        Sweep(self.clone())
    }
}

/// Notes the progress of deliveries. It reads records, and writes nothing else of them.
///
/// A push config is a child of its task: it names the task's incarnation, and readers check the
/// task first. These writes change neither the task's version nor anything a client sees. Only
/// the holder of a config's lease makes them, and only for the registration the lease was taken
/// for.
#[derive(Debug, Clone)]
pub struct Deliveries {
    reader: RecordReader,
    table: Arc<dyn Table>,
}

impl Deliveries {
    /// The brake, which also stops deliveries.
    #[must_use]
    pub fn brakes(&self) -> Brakes {
        Brakes::new(self.table.clone())
    }
}

impl Deref for Deliveries {
    type Target = RecordReader;

    fn deref(&self) -> &RecordReader {
        &self.reader
    }
}

/// What a sweep looks for, over all tenants: it has the key of an item and no owner.
#[derive(Debug, Clone)]
pub struct Sweep(Records);

/// What can write can read.
impl Deref for Records {
    type Target = RecordReader;

    fn deref(&self) -> &RecordReader {
        &self.reader
    }
}

/// The changes that give an item these attributes and remove the absent ones.
fn changes(attributes: Attributes) -> Vec<ItemChange> {
    let changes = attributes.into_iter();
    let changes = changes.map(|(name, value)| match value {
        Some(value) => ItemChange::set(name, value),
        None => ItemChange::Remove(name.into()),
    });
    changes.collect()
}

impl fmt::Debug for RecordReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordReader")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records")
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}
