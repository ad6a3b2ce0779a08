//! What the runtime keeps: records over a table and bytes, in memory and on AWS.
//!
//! A function takes the narrowest type it needs: [`records::RecordReader`] for `tasks-get`,
//! [`records::Records`] for the functions that run turns. A store of one's own is a
//! [`table::Table`] and [`Blobs`]; `contract` is the test suite that every one passes.

/// A store in memory: records over a table and bytes in memory.
pub mod memory {
    pub use a2a_lambda_store::memory::{MemoryBlobs, MemoryStore, MemoryTable};
}

pub use a2a_lambda_model::store::{
    BlobHead, BlobOwner, BlobReader, Blobs, CommitResult, Download, Expect, Expiring,
    ExpiringThread, IN_CONTEXT, IdempotencyEntry, KeyWrite, ListPosition, Measured, Meter,
    ProjectedTask, Projection, ReadBlobs, RecordPage, RecordQuery, SizeError, StateRemoved,
    StoreError, Tail, TaskWrite, ThreadPage, ThreadPosition, ThreadQuery, ThreadRecord,
    ThreadState, ThreadStatus, ThreadWrite, UploadTerms, UploadUrl, health, queue, remove_below,
};
/// The contract of what is stored over a table.
#[cfg(any(test, feature = "contract-tests"))]
pub use a2a_lambda_store::contract;
pub use a2a_lambda_store::{api_keys, brake, counters, documents, keys, limits, records, table};

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
