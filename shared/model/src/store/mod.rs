//! The storage traits for tasks, threads and bytes, and the rules every store
//! follows.
//!
//! A function takes the narrowest trait it needs: [`ReadTasks`] for `tasks-get`,
//! [`WriteTasks`] for the functions that run turns. A store decides by versions and
//! write ids only, never by a task's state. `contract` is the test suite that every
//! implementation passes.
//!
//! - `tasks`: the traits for tasks
//! - `commit`, `idempotency`: what one commit of a task writes
//! - `list`, `projection`, `tail`: reads of a page of tasks, or of a part of a task
//! - `thread`: the threads of contexts, and their traits
//! - `blobs`: the bytes of files, and their traits
//! - [`api_keys`]: the API keys of a deployment
//! - [`documents`]: what skills keep beside their tasks
//! - [`limits`]: counting what a tenant uses
//! - `meter`: counting the capacity of store calls
//! - [`counters`]: counters that many processes share
//! - [`health`]: whether a dependency works
//! - [`push`]: the traits for push configs
//! - [`queue`]: the queues, and what a sweep reads
//! - [`wrap`]: traits for stores that wrap another store
//! - `error`: why a store call failed

pub mod api_keys;
mod blobs;
mod commit;
#[cfg(any(test, feature = "contract-tests"))]
pub mod contract;
pub mod counters;
pub mod documents;
mod error;
pub mod health;
mod idempotency;
pub mod limits;
mod list;
mod meter;
mod projection;
pub mod push;
pub mod queue;
mod tail;
mod tasks;
mod thread;
pub mod wrap;

pub use blobs::{
    BlobHead, BlobReader, Blobs, Download, Measured, OBJECTS_AT_ONCE, ReadBlobs, UploadTerms,
    UploadUrl, measured_to_end, read_up_to, remove_below,
};
pub use commit::{Committed, Expect, TaskWrite};
pub use error::{SizeError, StoreError};
pub use idempotency::{KeyWrite, Keyed};
pub use list::{IN_CONTEXT, ListPosition, RecordPage, RecordQuery};
pub use meter::Meter;
pub use projection::{ProjectedTask, Projection};
pub use tail::Tail;
pub use tasks::{ReadTasks, WriteTasks};
pub use thread::{
    Expiring, ExpiringThread, ReadThreads, StateRemoved, SweepThreads, ThreadPage, ThreadPosition,
    ThreadQuery, ThreadRecord, ThreadState, ThreadStatus, ThreadWrite, WriteThreads,
};
