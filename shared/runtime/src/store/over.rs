//! Stores in front of other stores.
//!
//! A store that counts, delays, refuses or changes something of another one
//! says which one stands behind it, and has only the calls of its own:
//!
//! ```
//! use a2a_lambda::store::memory::MemoryStore;
//! use a2a_lambda::store::over::OverTasks;
//! use a2a_lambda::store::{Committed, StoreError, TaskWrite, WriteTasks};
//! use std::sync::atomic::{AtomicUsize, Ordering};
//!
//! struct Counting {
//!     behind: MemoryStore,
//!     writes: AtomicUsize,
//! }
//!
//! #[async_trait::async_trait]
//! impl OverTasks for Counting {
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
//! let store = Counting { behind: MemoryStore::new(), writes: AtomicUsize::new(0) };
//! let _whole_store: &dyn WriteTasks = &store;
//! ```
//!
//! Every other call goes to the store behind, also one that has a default in the
//! trait of the store: the default is for a store without a better answer, and
//! the one behind may have one. Whoever changes what a call means has to look at
//! its sisters: a store that counts loads counts heads and tails only if it says
//! so.
//!
//! Only one of the two traits should be in scope where such a store is called
//! by its own type, since both have the same names.

use super::push::{DeliverPushes, Pushes, ReadPushes, WritePushes};
use super::queue::{ObjectsPlace, OpenTask, SweepObjects, SweepTasks, TasksByKey};
use super::{
    BlobHead, BlobReader, Blobs, Committed, Download, Excerpt, ExpiringThread, Keyed, Measured,
    ReadTasks, ReadThreads, RecordPage, RecordQuery, StateRemoved, StoreError, SweepThreads, Tail,
    TaskWrite, ThreadPage, ThreadQuery, ThreadRecord, ThreadWrite, UploadTerms, UploadUrl, Wanted,
    WriteTasks, WriteThreads,
};
use crate::task::{
    Blob, ContextId, Delivery, KeyHash, Owner, PushId, PushLease, PushRecord, TaskId, TaskKey,
    TaskRecord, ThreadKey, Timestamp, WriteId,
};
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

/// Defines a trait whose calls go to the store behind, and makes whoever has it
/// a store. A new call of a store is added here once: an implementation that
/// lacks one that has a default is refused by the lint, and one that has none by
/// the compiler.
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
            /// The store behind.
            fn $behind(&self) -> &dyn $store;
            $(
                $(
                    #[doc = concat!("[`", stringify!($part), "::", stringify!($plain), "`] of the store behind.")]
                    fn $plain(&self) -> $value {
                        self.$behind().$plain()
                    }
                )*
                $(
                    #[doc = concat!("[`", stringify!($part), "::", stringify!($call), "`] of the store behind.")]
                    ///
                    /// # Errors
                    /// As that.
                    async fn $call(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                        self.$behind().$call($($arg),*).await
                    }
                )*
            )+
        }

        $(
            #[deny(clippy::missing_trait_methods, reason = "a default hides the store behind")]
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
    /// Tasks in front of other tasks.
    OverTasks: Send, Sync;
    tasks: WriteTasks;
    ReadTasks {
        load(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        head(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        heads(tasks: &[OpenTask], now: Timestamp) -> Vec<TaskRecord>;
        excerpt(head: TaskRecord, wanted: Wanted, now: Timestamp) -> Option<Excerpt>;
        tail(owner: &Owner, id: &TaskId, after: u64, now: Timestamp) -> Option<Tail>;
        list(owner: &Owner, query: &RecordQuery) -> RecordPage;
        load_key(owner: &Owner, key: &KeyHash, now: Timestamp) -> Option<Keyed>;
    }
    WriteTasks {
        commit(write: &TaskWrite) -> Committed;
        ended_task(owner: &Owner, id: &TaskId, now: Timestamp) -> Option<TaskRecord>;
        tasks_in(
            owner: &Owner, context: &ContextId, after: Option<String>, limit: usize,
        ) -> (Vec<TaskRecord>, Option<String>);
        remove_task(record: &TaskRecord) -> bool;
        heartbeat(record: &TaskRecord, lease_until: Timestamp) -> bool;
    }
}

over! {
    /// Conversations in front of other conversations.
    OverThreads: Send, Sync;
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
    /// Webhooks in front of other webhooks.
    OverPushes: Send, Sync;
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
    /// Bytes in front of other bytes.
    OverBlobs: Send, Sync;
    blobs: Blobs;
    Blobs {
        put(key: &str, bytes: Bytes) -> ();
        get(key: &str) -> Option<Bytes>;
        put_for(task: &TaskKey, key: &str, bytes: Bytes) -> ();
        put_for_thread(thread: &ThreadKey, key: &str, bytes: Bytes) -> ();
        put_from(task: &TaskKey, key: &str, source: &mut BlobReader) -> Measured;
        open(key: &str) -> Option<BlobReader>;
        head(key: &str) -> Option<BlobHead>;
        copy(task: &TaskKey, from: &Blob, to: &str) -> bool;
        keys(prefix: &str, after: Option<&str>, limit: usize) -> Vec<String>;
        remove(keys: &[String]) -> ();
        read_url(
            download: &Download<'_>, now: Timestamp, lifetime: Duration,
        ) -> Option<String>;
        upload_url(
            terms: &UploadTerms<'_>, now: Timestamp, lifetime: Duration,
        ) -> Option<UploadUrl>;
    }
}

over! {
    /// The index of open tasks in front of another.
    OverSweepTasks: Send, Sync;
    open_index: SweepTasks;
    SweepTasks {
        [open_shards() -> u32]
        open_tasks(
            shard: u32, after: Option<String>, limit: usize,
        ) -> (Vec<OpenTask>, Option<String>);
    }
}

over! {
    /// The index of conversations whose time is up in front of another.
    OverSweepThreads: OverThreads;
    expiry_index: SweepThreads;
    SweepThreads {
        [expiry_shards() -> u32]
        expiring_threads(
            shard: u32, now: Timestamp, after: Option<String>, limit: usize,
        ) -> (Vec<ExpiringThread>, Option<String>);
        note_expiry(hint: &ExpiringThread, thread: &ThreadRecord) -> ();
        remove_state(owner: &Owner, id: &ContextId, now: Timestamp) -> StateRemoved;
    }
}

over! {
    /// What a look at all objects asks, in front of another that answers.
    OverObjects: Send, Sync;
    objects: SweepObjects;
    TasksByKey {
        stored_at(key: &TaskKey) -> Option<TaskRecord>;
        standing_at(key: &TaskKey) -> Option<TaskRecord>;
        state_object(thread: &ThreadKey) -> Option<String>;
    }
    SweepObjects {
        content_objects(key: &TaskKey) -> Vec<String>;
        objects_place() -> Option<ObjectsPlace>;
        note_objects_place(place: &ObjectsPlace) -> ();
    }
}

#[cfg(test)]
mod tests;
