//! Keeps tasks, threads and push configs in a table.
//!
//! - here: who reads and who writes; reads that several items have to agree on
//! - `task_item`: converts a task to its items and back
//! - `task_image`: the task in a record of the table's stream
//! - `large_value`: content that is too large for an item
//! - `tasks`: reads and writes of tasks; `commit`: the writes of one commit
//! - `children`: the child items of a task that has grown, and those that a response shows
//! - `idempotency`: the idempotency keys of sends
//! - `list`: a page of tasks from the list index
//! - `contexts`: a page of contexts; `task_pointers`: the tasks of one context
//! - `threads`, `pushes`: threads and push configs, with their items
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
mod list;
mod pushes;
mod removal;
mod sweep;
mod task_image;
mod task_item;
mod task_pointers;
mod tasks;
mod threads;

pub use self::large_value::{ROOT, UPLOADS};
pub use self::task_image::task_image;
pub use self::task_item::{end_of_life, to_task};

use crate::brake::Brakes;
use crate::item::Attributes;
use crate::table::{ItemChange, ReadTable, Table};
use a2a_lambda_model::store::{Blobs, OBJECTS_AT_ONCE, ReadBlobs, StoreError};
use std::collections::BTreeSet;
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
        Deliveries(self.clone())
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
pub struct Deliveries(Records);

impl Deliveries {
    /// The brake, which also stops deliveries.
    #[must_use]
    pub fn brakes(&self) -> Brakes {
        Brakes::new(self.0.table())
    }
}

impl Deref for Deliveries {
    type Target = RecordReader;

    fn deref(&self) -> &RecordReader {
        &self.0.reader
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

/// How often a record that changes during the read is read.
const TRIES: u32 = 4;

/// The reads of a task or thread that found it torn.
#[derive(Default)]
struct TornReads {
    /// The versions that they found.
    versions: BTreeSet<u64>,
    /// The last refusal of the bucket.
    denial: Option<StoreError>,
}

impl TornReads {
    /// Notes the version that a read found.
    fn note(&mut self, version: u64) {
        self.versions.insert(version);
    }

    /// The result of a read; `None` if it has to be made again. That is also so if the bucket
    /// refuses an object: a role that may not list gets this for an object that is gone.
    fn result<T>(&mut self, read: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Err(error @ StoreError::Denied(_)) => {
                self.denial = Some(error);
                Ok(None)
            }
            read => read,
        }
    }

    /// The error after the last read. Several versions mean that the record changes; one means
    /// that a part is missing, or that the bucket refuses it.
    fn error(self) -> StoreError {
        if self.versions.len() > 1 {
            let why = "the record changed during every attempt to read it";
            return StoreError::Unavailable(why.to_owned());
        }
        let why = "the record refers to an item or object that does not exist";
        self.denial
            .unwrap_or_else(|| StoreError::Corrupt(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changing_record_is_unavailable_and_a_torn_one_corrupt() {
        let error = |versions: &[u64], denied: bool| {
            let mut reads = TornReads::default();
            versions.iter().for_each(|version| reads.note(*version));
            if denied {
                let refused: Result<Option<u8>, _> = Err(StoreError::Denied(String::new()));
                assert!(matches!(reads.result(refused), Ok(None)));
            }
            reads.error()
        };
        let changes = error(&[1, 2], false);
        assert!(matches!(changes, StoreError::Unavailable(_)), "{changes:?}");
        let broken = error(&[1], false);
        assert!(matches!(broken, StoreError::Corrupt(_)), "{broken:?}");
        let denied = error(&[1], true);
        assert!(matches!(denied, StoreError::Denied(_)), "{denied:?}");
    }
}
