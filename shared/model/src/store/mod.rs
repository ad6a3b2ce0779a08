//! What a store keeps and returns, and the traits of bytes, queues and meters.
//!
//! The crate `a2a_lambda_store` keeps tasks, threads and push configs in a table. A store decides
//! by versions and write ids only, never by a task's state.
//!
//! - `commit`, `idempotency`: what one commit of a task writes
//! - `list`, `projection`, `tail`: reads of a page of tasks, or of a part of a task
//! - `thread`: the threads of contexts
//! - `blobs`: the bytes of files, and their traits
//! - [`api_keys`]: the API keys of a deployment
//! - [`brake`]: what an operator has stopped
//! - [`documents`]: what skills keep beside their tasks
//! - [`limits`]: counting what a tenant uses
//! - `meter`: counting the capacity of store calls
//! - [`counters`]: counters that many processes share
//! - [`health`]: whether a dependency works
//! - [`queue`]: the queues, and what a sweep reads
//! - `error`: why a store call failed

pub mod api_keys;
mod blobs;
pub mod brake;
mod commit;
pub mod counters;
pub mod documents;
mod error;
pub mod health;
mod idempotency;
pub mod limits;
mod list;
mod meter;
mod projection;
pub mod queue;
mod tail;
mod thread;

pub use blobs::{
    BlobHead, BlobOwner, BlobReader, Blobs, Download, Measured, OBJECTS_AT_ONCE, ReadBlobs,
    UploadTerms, UploadUrl, measured_to_end, read_up_to, remove_below,
};
pub use commit::{Committed, Expect, TaskWrite};
pub use error::{SizeError, StoreError};
pub use idempotency::{KeyWrite, Keyed};
pub use list::{IN_CONTEXT, ListPosition, RecordPage, RecordQuery};
pub use meter::Meter;
pub use projection::{ProjectedTask, Projection};
pub use tail::Tail;
pub use thread::{
    Expiring, ExpiringThread, StateRemoved, ThreadPage, ThreadPosition, ThreadQuery, ThreadRecord,
    ThreadState, ThreadStatus, ThreadWrite,
};
