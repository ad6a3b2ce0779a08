//! The stores: the traits, what is stored over a table, the table in memory and that on AWS.
//!
//! A function takes the narrowest trait it needs: [`ReadTasks`] for `tasks-get`,
//! [`WriteTasks`] for the functions that run turns. `contract` is the test suite that
//! every implementation passes.

/// A store in memory: records over a table and bytes in memory.
pub mod memory {
    pub use a2a_lambda_store::memory::{MemoryBlobs, MemoryTable};
    pub use a2a_lambda_store::memory_store::MemoryStore;
}

#[cfg(any(test, feature = "contract-tests"))]
pub use a2a_lambda_model::store::contract;
pub use a2a_lambda_model::store::{
    BlobHead, BlobReader, Blobs, Committed, Download, Expect, Expiring, ExpiringThread, IN_CONTEXT,
    KeyWrite, Keyed, ListPosition, Measured, Meter, ProjectedTask, Projection, ReadBlobs,
    ReadTasks, ReadThreads, RecordPage, RecordQuery, SizeError, StateRemoved, StoreError,
    SweepThreads, Tail, TaskWrite, ThreadPage, ThreadPosition, ThreadQuery, ThreadRecord,
    ThreadState, ThreadStatus, ThreadWrite, UploadTerms, UploadUrl, WriteTasks, WriteThreads,
    health, push, queue, remove_below, wrap,
};
/// The contract of what is stored over a table.
#[cfg(any(test, feature = "contract-tests"))]
pub use a2a_lambda_store::contract as table_contract;
pub use a2a_lambda_store::{api_keys, counters, documents, keys, limits, records, table};

/// The stored form of tasks and threads, for stores of an author.
pub mod stored {
    pub use a2a_lambda_model::stored::{
        Encoded, MAX_BYTES, OPEN_MAX_BYTES, SCHEMA, arrange, decode, decode_state, decode_thread,
        encode, encode_state, encode_thread, push_of_text, push_text, saved_size, state_size,
    };
}

#[cfg(feature = "aws")]
pub use a2a_lambda_aws::{clients as aws, dynamodb, s3, sqs};

#[cfg(feature = "secrets")]
pub use a2a_lambda_aws::secretsmanager;
