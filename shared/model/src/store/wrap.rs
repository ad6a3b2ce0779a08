//! Traits for stores that wrap another store.
//!
//! A wrapper that counts, delays, refuses or changes calls names the wrapped store
//! and implements only the methods it changes:
//!
//! ```
//! use a2a_lambda_model::store::wrap::WrapTasks;
//! use a2a_lambda_model::store::{Committed, StoreError, TaskWrite, WriteTasks};
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! struct Counting<S> {
//!     behind: S,
//!     writes: AtomicUsize,
//! }
//!
//! #[async_trait::async_trait]
//! impl<S: WriteTasks> WrapTasks for Counting<S> {
//!     fn tasks(&self) -> &dyn WriteTasks {
//!         &self.behind
//!     }
//!
//!     async fn commit(&self, write: &TaskWrite) -> Result<Committed, StoreError> {
//!         self.writes.fetch_add(1, Ordering::Relaxed);
//!         self.behind.commit(write).await
//!     }
//! }
//!
//! // The wrapper is a whole store.
//! fn as_store<S: WriteTasks>(counting: &Counting<S>) -> &dyn WriteTasks {
//!     counting
//! }
//! ```
//!
//! Every other method calls the wrapped store, also where the store trait has a
//! default: the wrapped store may override that default. A wrapper that counts `load`
//! does not count `head` and `tail` unless it implements them too.
//!
//! Bring only one of the two traits into scope where a wrapper is called by its own
//! type: both have the same method names.

use super::push::{DeliverPushes, Pushes, ReadPushes, WritePushes};
use super::queue::{ObjectsPlace, OpenTask, SweepObjects, SweepTasks};
use super::{
    BlobHead, BlobReader, Blobs, Committed, Download, ExpiringThread, Keyed, Measured,
    ProjectedTask, Projection, ReadBlobs, ReadTasks, ReadThreads, RecordPage, RecordQuery,
    StateRemoved, StoreError, SweepThreads, Tail, TaskWrite, ThreadPage, ThreadQuery, ThreadRecord,
    ThreadWrite, UploadTerms, UploadUrl, WriteTasks, WriteThreads,
};
use crate::task::{
    Blob, ContextId, Delivery, KeyHash, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey,
    TaskRecord, ThreadKey, Timestamp, WriteId,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

/// Defines a trait that forwards each method to the wrapped store, and implements the
/// store traits for its implementors. Each store method is listed once below. The
/// compiler reports a missing required method, and the lint `missing_trait_methods` a
/// missing method that has a default.
macro_rules! over {
    (
        $(#[$about:meta])*
        $over:ident: $($base:path),+;
        $behind:ident: $store:ident;
        $($part:ident {
            $([$plain:ident() -> $value:ty])*
            $($call:ident($($arg:ident: $type:ty),* $(,)?) -> $answer:ty;)*
        })+
    ) => {
        $(#[$about])*
        #[async_trait]
        pub trait $over: $($base +)+ {
            /// The wrapped store.
            fn $behind(&self) -> &dyn $store;
            $(
                $(
                    #[doc = concat!("[`", stringify!($part), "::", stringify!($plain), "`] of the wrapped store.")]
                    fn $plain(&self) -> $value {
                        self.$behind().$plain()
                    }
                )*
                $(
                    #[doc = concat!("[`", stringify!($part), "::", stringify!($call), "`] of the wrapped store.")]
                    ///
                    /// # Errors
                    /// As that method.
                    async fn $call(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                        self.$behind().$call($($arg),*).await
                    }
                )*
            )+
        }

        $(
            #[deny(clippy::missing_trait_methods, reason = "a default hides the wrapped store")]
            #[async_trait]
            impl<S: $over> $part for S {
                $(
                    fn $plain(&self) -> $value {
                        $over::$plain(self)
                    }
                )*
                $(
                    async fn $call(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                        $over::$call(self, $($arg),*).await
                    }
                )*
            }
        )+
    };
}

over! {
    /// A wrapper of a task store.
    WrapTasks: Send, Sync;
    tasks: WriteTasks;
    ReadTasks {
        load(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        head(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        heads(tasks: &[OpenTask], now: Timestamp) -> Vec<TaskRecord>;
        project(head: TaskRecord, wanted: Projection, now: Timestamp) -> Option<ProjectedTask>;
        tail(owner: &Owner, id: &TaskId, after: u64, now: Timestamp) -> Option<Tail>;
        list(owner: &Owner, query: &RecordQuery) -> RecordPage;
        load_key(owner: &Owner, key: &KeyHash, now: Timestamp) -> Option<Keyed>;
    }
    WriteTasks {
        commit(write: &TaskWrite) -> Committed;
        put_pointer(record: &TaskRecord, until: Timestamp) -> ();
        ended_task(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        tasks_in(
            owner: &Owner, context: &ContextId, after: Option<String>, limit: usize,
        ) -> (Vec<TaskRecord>, Option<String>);
        remove_task(record: &TaskRecord) -> bool;
        heartbeat(record: &TaskRecord, lease_until: Timestamp) -> bool;
    }
}

over! {
    /// A wrapper of a thread store.
    WrapThreads: Send, Sync;
    threads: WriteThreads;
    ReadThreads {
        load_thread(owner: &Owner, id: &ContextId) -> Option<ThreadRecord>;
        load_thread_head(owner: &Owner, id: &ContextId) -> Option<ThreadRecord>;
        list_threads(owner: &Owner, query: &ThreadQuery) -> ThreadPage;
    }
    WriteThreads {
        put_thread(write: &ThreadWrite) -> bool;
        forget_state(record: &ThreadRecord) -> ();
        remove_thread(record: &ThreadRecord) -> bool;
    }
}

over! {
    /// A wrapper of a push config store.
    WrapPushes: Send, Sync;
    webhooks: Pushes;
    ReadPushes {
        pushes(owner: &Owner, task: &TaskId) -> Vec<PushRecord>;
    }
    WritePushes {
        put_push(push: &PushRecord) -> ();
        delete_push(owner: &Owner, task: &TaskId, id: &PushId) -> ();
    }
    DeliverPushes {
        lease_push(
            push: &PushRecord, lease: &PushLease, now: Timestamp, clean_at: Timestamp,
        ) -> bool;
        note_delivery(push: &PushRecord, holder: &WriteId, delivery: &Delivery) -> bool;
        confirm_pushes(record: &TaskRecord) -> bool;
    }
}

over! {
    /// A wrapper of a blob store.
    WrapBlobs: Send, Sync;
    blobs: Blobs;
    ReadBlobs {
        get(key: &str) -> Option<Bytes>;
        open(key: &str) -> Option<BlobReader>;
        head(key: &str) -> Option<BlobHead>;
        read_url(
            download: &Download<'_>, now: Timestamp, lifetime: Duration,
        ) -> Option<String>;
    }
    Blobs {
        put(key: &str, bytes: Bytes) -> ();
        put_for(task: &TaskKey, key: &str, bytes: Bytes) -> ();
        put_for_thread(thread: &ThreadKey, key: &str, bytes: Bytes) -> ();
        put_from(task: &TaskKey, key: &str, source: &mut BlobReader) -> Measured;
        copy(task: &TaskKey, from: &Blob, to: &str) -> bool;
        keys(prefix: &str, after: Option<&str>, limit: usize) -> Vec<String>;
        remove(keys: &[String]) -> ();
        upload_url(
            terms: &UploadTerms<'_>, now: Timestamp, lifetime: Duration,
        ) -> Option<UploadUrl>;
    }
}

over! {
    /// A wrapper of the index of open tasks.
    WrapSweepTasks: Send, Sync;
    open_index: SweepTasks;
    SweepTasks {
        [open_shards() -> u32]
        open_tasks(
            shard: u32, after: Option<String>, limit: usize,
        ) -> (Vec<OpenTask>, Option<String>);
    }
}

over! {
    /// A wrapper of the index of threads to sweep.
    WrapSweepThreads: WrapThreads;
    expiry_index: SweepThreads;
    SweepThreads {
        [expiry_shards() -> u32]
        expiring_threads(
            shard: u32, now: Timestamp, after: Option<String>, limit: usize,
        ) -> (Vec<ExpiringThread>, Option<String>);
        note_expiry(thread: &ThreadRecord) -> ();
        remove_state(owner: &Owner, id: &ContextId, now: Timestamp) -> StateRemoved;
    }
}

over! {
    /// A wrapper of what the collection of unreferenced objects reads.
    WrapObjects: Send, Sync;
    objects: SweepObjects;
    SweepObjects {
        load_by_key(key: &TaskKey) -> Option<TaskRecord>;
        head_by_key(key: &TaskKey) -> Option<TaskRecord>;
        state_object(thread: &ThreadKey) -> Option<String>;
        content_objects(key: &TaskKey) -> Vec<String>;
        objects_place() -> Option<ObjectsPlace>;
        note_objects_place(place: &ObjectsPlace) -> ();
    }
}
