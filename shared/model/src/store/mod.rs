//! What a store keeps and returns, and the traits of bytes, queues and meters.
//!
//! The crate `a2a_lambda_store` keeps tasks, threads and push configs in a table. A store decides
//! by versions and write ids only, never by a task's state.
//!
//! - `commit`: what one commit of a task writes, with its idempotency key
//! - `list`, `projection`: reads of a page of tasks, or of a part of a task
//! - `thread`: the threads of contexts
//! - `blobs`: the bytes of files, and their traits
//! - [`api_keys`]: the API keys of a deployment
//! - [`brake`]: what an operator has stopped
//! - [`documents`]: what skills keep beside their tasks
//! - [`limits`]: counting what a tenant uses
//! - [`health`]: whether a dependency works
//! - [`queue`]: the queues, and what a sweep reads
//! - `error`: why a store call failed

pub mod api_keys;
mod blobs;
pub mod brake;
mod commit;
pub mod documents;
mod error;
pub mod health;
pub mod limits;
mod list;
mod projection;
pub mod queue;
mod thread;

pub use blobs::{
    BlobHead, BlobOwner, BlobReader, Blobs, Download, Measured, OBJECTS_AT_ONCE, ReadBlobs,
    UploadTerms, UploadUrl, measured_to_end, read_up_to, remove_below,
};
pub use commit::{CommitResult, Expect, IdempotencyEntry, KeyWrite, TaskWrite};
pub use error::{SizeError, StoreError};
pub use list::{IN_CONTEXT, ListPosition, RecordPage, RecordQuery};
pub use projection::{ProjectedTask, Projection, Tail};
pub use thread::{
    Expiring, ExpiringThread, StateRemoved, ThreadPage, ThreadPosition, ThreadQuery, ThreadRecord,
    ThreadState, ThreadStatus, ThreadWrite,
};

/// Takes the capacity units of each store call. The caller of the store decides to which
/// request or turn they belong.
pub trait Meter: std::fmt::Debug + Send + Sync {
    /// Adds the read and write units of one store call (Amazon DynamoDB: read request
    /// units and write request units).
    fn add(&self, read: f64, write: f64);
}
