//! Counts what is written to the table, so that an open page notices it.

use crate::stream::{Stream, TakeRecords};
use async_trait::async_trait;
use aws_sdk_dynamodbstreams::types::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinHandle;

/// How many writes the stream of the table has. It grows with each write of any task.
#[derive(Debug)]
pub(super) struct ChangeCount {
    count: Arc<StreamCounter>,
    reader: JoinHandle<()>,
}

impl Drop for ChangeCount {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl ChangeCount {
    /// Reads the stream from its beginning, for as long as this value lives.
    pub(super) fn follow(stream: Stream) -> Self {
        let count = Arc::new(StreamCounter::default());
        let counter = Arc::clone(&count);
        let reader = tokio::spawn(async move { stream.follow(counter.as_ref()).await });
        Self { count, reader }
    }

    pub(super) fn get(&self) -> u64 {
        self.count.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct StreamCounter(AtomicU64);

#[async_trait]
impl TakeRecords for StreamCounter {
    async fn take(&self, records: &[Record]) -> bool {
        let read = u64::try_from(records.len()).unwrap_or(u64::MAX);
        self.0.fetch_add(read, Ordering::Relaxed);
        true
    }
}
