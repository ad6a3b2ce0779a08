//! Objects of tasks and threads: they are deleted with their task or thread, or by a sweep
//! after their replacement. A reader in the meantime does not miss them.

use crate::full_tenant::{Estate, Stored};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::runtime::stores;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::queue::ObjectsPlace;
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{
    BlobReader, Blobs, CommitResult, StateRemoved, StoreError, ThreadState, ThreadWrite, stored,
};
use a2a_lambda::task::{
    Blob, Change, ContextId, Message, OutputCounts, Part, TaskId, TaskKey, ThreadKey, Timestamp,
};
use a2a_lambda::testing::{BlobHooks, BlobLayer};
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::{BUCKET, TABLE};
use async_trait::async_trait;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::BeforeTransmitInterceptorContextRef;
use bytes::Bytes;
use futures::future::BoxFuture;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

/// More bytes than a value inside an item may have (32 KiB).
const LARGE: usize = 300 * 1024;

/// A write of a thread at version `expect`, with this many bytes of state.
fn thread(sample: &SampleData, id: &ContextId, expect: u64, size: usize) -> ThreadWrite {
    let mut write = sample.thread(&sample.owner, id, expect);
    write.record.state = ThreadState {
        session: [("k".to_owned(), noise(1, size).into())].into(),
        ..ThreadState::default()
    };
    write
}

/// The names of the objects with this mark.
fn objects(stored: &Stored, mark: &str) -> Vec<String> {
    let names = stored.objects.keys().filter(|key| key.contains(mark));
    names.cloned().collect()
}

#[tokio::test]
async fn the_next_days_sweep_removes_replaced_objects() {
    let estate = Estate::new("replaced").await;
    let owner = &estate.sample.owner;
    let context = ContextId::parse("mine:c").unwrap();
    let much = estate
        .say(owner, "much", |command| {
            command.message.context_id = Some(context.clone());
        })
        .await;
    // The skill saved the task's value twice, and its question saved it once more.
    let stored = estate.stored(&owner.tenant).await;
    assert_eq!(objects(&stored, "-STATE.").len(), 3, "{:?}", stored.names());
    look_tomorrow(&estate).await;
    let stored = estate.stored(&owner.tenant).await;
    assert_eq!(objects(&stored, "-STATE.").len(), 1, "{:?}", stored.names());
    assert_eq!(objects(&stored, "-state").len(), 1, "{:?}", stored.names());
    let ended = estate.say(owner, "that is all", |command| {
        command.message.task_id = Some(much.id.clone());
        command.message.context_id = Some(context.clone());
    });
    assert_eq!(ended.await.id, much.id);
    look_tomorrow(&estate).await;
    // The content is small now, or was deleted with the end of the task.
    let stored = estate.stored(&owner.tenant).await;
    assert_eq!(objects(&stored, "-STATE."), [""; 0]);
    assert_eq!(objects(&stored, "-state"), [""; 0]);
    assert_eq!(stored.objects.len(), 1, "the file: {:?}", stored.names());
}

/// Sweeps all objects at a time when those of today are old enough.
async fn look_tomorrow(estate: &Estate) {
    let records = &estate.near.records;
    let from_the_start = ObjectsPlace::default();
    records
        .sweep()
        .note_objects_place(&from_the_start)
        .await
        .unwrap();
    let now = SystemClock.now().plus(Duration::from_secs(25 * 3600));
    let engine = crate::object_sweep::engine(&estate.near, now);
    let swept = Box::pin(engine.sweeper.sweep_objects()).await.unwrap();
    assert!(swept.is_complete);
}

#[tokio::test]
async fn content_objects_names_every_object_of_a_task() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "named").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let started = sample.committed(&stores, &task, [sample.start()]).await;
    let mut task = started.unwrap();
    // Most of the messages stay in the table, on several pages; the last ones are objects.
    for size in [30 * 1024; 40].into_iter().chain([LARGE; 3]) {
        let says = Change::Update {
            message: Some(Message::from_agent("m", vec![Part::text(noise(2, size))])),
            metadata: Default::default(),
        };
        task = sample.committed(&stores, &task, [says]).await.unwrap();
    }
    let below = format!("v1/{}/", task.key().folder());
    let mut kept = emulator.blobs.keys(&below, None, 100).await.unwrap();
    let sweep = emulator.records.sweep();
    let mut named = sweep.content_objects(&task.key()).await.unwrap();
    kept.sort();
    named.sort();
    assert_eq!(named, kept);
    assert_eq!(named.len(), 3, "{named:?}");
}

#[tokio::test]
async fn a_repeated_thread_write_leaves_a_later_one_unchanged() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "late").unwrap();
    let id = ContextId::parse("c:1").unwrap();
    let first = thread(&sample, &id, 0, LARGE);
    let second = thread(&sample, &id, 1, LARGE + 1);
    let records = &emulator.records;
    for write in [&first, &second, &first, &second] {
        assert!(records.put_thread(write).await.unwrap());
        let newest = records.load_thread(&sample.owner, &id).await.unwrap();
        assert_ne!(newest, None);
    }
    let stored = records.load_thread(&sample.owner, &id).await.unwrap();
    assert!(stored.as_ref() == Some(&second.record));
}

#[tokio::test]
async fn expiry_and_deletion_of_state_remove_its_object() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "state").unwrap();
    let records = &emulator.records;
    let id = ContextId::parse("c:1").unwrap();
    let below = format!("v1/{}/", ThreadKey::new(&sample.owner, &id).folder());
    let keys = || async { emulator.blobs.keys(&below, None, 10).await.unwrap() };

    let mut write = thread(&sample, &id, 0, LARGE);
    write.record.state_expires_at = sample.now;
    assert!(records.put_thread(&write).await.unwrap());
    assert_eq!(keys().await.len(), 1);
    // Another process cleans up; it has never read the state.
    let mut settings = crate::full_tenant::settings();
    TABLE.clone_into(&mut settings.table);
    BUCKET.clone_into(&mut settings.bucket);
    let sweep = stores(&emulator.clients, &settings).0.sweep();
    let removed = |at: Timestamp| sweep.remove_state(&sample.owner, &id, at);
    let nothing = StateRemoved::default();
    assert_eq!(removed(sample.at(-1)).await.unwrap(), nothing);
    assert_eq!(keys().await.len(), 1);
    let gone = StateRemoved {
        state: true,
        objects: 1,
    };
    assert_eq!(removed(sample.now).await.unwrap(), gone);
    assert_eq!(keys().await, [""; 0]);
    assert_eq!(removed(sample.now).await.unwrap(), nothing);

    let mut later = thread(&sample, &id, 1, LARGE);
    later.record.state_version = 2;
    assert!(records.put_thread(&later).await.unwrap());
    // The objects of an attempt that lost are removed too. An object later than the stored
    // thread is kept: it may belong to the next one.
    let lost = thread(&sample, &id, 0, LARGE + 1);
    assert!(!records.put_thread(&lost).await.unwrap());
    let mut next = thread(&sample, &id, 7, LARGE + 2);
    next.record.updated_at = sample.at(1);
    assert!(!records.put_thread(&next).await.unwrap());
    assert_eq!(keys().await.len(), 3);
    assert!(records.remove_thread(&later.record).await.unwrap());
    let left = keys().await;
    let [left] = left.as_slice() else {
        panic!("{left:?}");
    };
    assert!(left.contains("-8-"), "{left}");
}

/// Runs a future before the first read of an object. Parallel reads wait for it.
struct Meanwhile {
    first: tokio::sync::Mutex<Option<BoxFuture<'static, ()>>>,
}

#[async_trait]
impl BlobHooks for Meanwhile {
    async fn get(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<Bytes>, StoreError> {
        let mut waiting = self.first.lock().await;
        if let Some(first) = waiting.take() {
            first.await;
        }
        drop(waiting);
        blobs.get(key).await
    }
}

/// A store that reads while `first` happens.
fn reading(emulator: &Emulator, first: BoxFuture<'static, ()>) -> Records {
    let meanwhile = Meanwhile {
        first: tokio::sync::Mutex::new(Some(first)),
    };
    let blobs = BlobLayer::new(Arc::new(emulator.blobs.clone()), meanwhile);
    dynamodb::records(emulator.clients.dynamodb.clone(), TABLE).with_blobs(blobs)
}

#[tokio::test]
async fn state_replaced_during_a_read_is_read_again() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "meanwhile").unwrap();
    let id = ContextId::parse("c:1").unwrap();
    let records = emulator.records.clone();
    let first = thread(&sample, &id, 0, LARGE);
    assert!(records.put_thread(&first).await.unwrap());
    let second = thread(&sample, &id, 1, LARGE);
    let write = second.clone();
    let blobs = emulator.blobs.clone();
    let below = format!("v1/{}/", ThreadKey::new(&sample.owner, &id).folder());
    let replaced = Box::pin(async move {
        let before = blobs.keys(&below, None, 10).await.unwrap();
        assert!(records.put_thread(&write).await.unwrap());
        // Like a sweep between the two reads.
        blobs.remove(&before).await.unwrap();
    });
    let reader = reading(&emulator, replaced);
    let read = reader.load_thread(&sample.owner, &id).await.unwrap();
    assert!(read.as_ref() == Some(&second.record));
}

/// Saves a value of this many bytes.
fn keeps(size: usize) -> Change {
    Change::Save {
        key: "k".to_owned(),
        value: noise(1, size).into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    }
}

#[tokio::test]
async fn a_task_value_replaced_during_a_read_is_read_again() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "kept").unwrap();
    let records = emulator.records.clone();
    let task = sample.task().unwrap();
    records.commit(&sample.create(&task)).await.unwrap();
    let first = sample.next(&task, [sample.start(), keeps(LARGE)]).unwrap();
    let answer = records.commit(&sample.update(&first, &task)).await.unwrap();
    assert_eq!(answer, CommitResult::Done);
    let second = sample.next(&first, [keeps(LARGE + 1)]).unwrap();
    let write = sample.update(&second, &first);
    let blobs = emulator.blobs.clone();
    let below = format!("v1/{}/", task.key().folder());
    let replaced = Box::pin(async move {
        let before = blobs.keys(&below, None, 10).await.unwrap();
        let answer = records.commit(&write).await.unwrap();
        assert_eq!(answer, CommitResult::Done);
        blobs.remove(&before).await.unwrap();
    });
    let reader = reading(&emulator, replaced);
    let read = reader.load(&sample.owner, &task.id, sample.now).await;
    assert!(read.unwrap().as_ref() == Some(&second));
}

#[tokio::test]
async fn one_replaced_object_among_several_makes_the_reader_read_again() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "several").unwrap();
    let records = emulator.records.clone();
    let task = sample.task().unwrap();
    records.commit(&sample.create(&task)).await.unwrap();
    let says = Change::Update {
        message: Some(Message::from_agent("m", vec![Part::text(noise(2, LARGE))])),
        metadata: Default::default(),
    };
    let first = sample.next(&task, [sample.start(), says, keeps(LARGE)]);
    let first = first.unwrap();
    let answer = records.commit(&sample.update(&first, &task)).await.unwrap();
    assert_eq!(answer, CommitResult::Done);
    let second = sample.next(&first, [keeps(LARGE + 1)]).unwrap();
    let write = sample.update(&second, &first);
    let blobs = emulator.blobs.clone();
    let below = format!("v1/{}/", task.key().folder());
    let replaced = Box::pin(async move {
        let before = blobs.keys(&below, None, 10).await.unwrap();
        let answer = records.commit(&write).await.unwrap();
        assert_eq!(answer, CommitResult::Done);
        // The objects of the message stay.
        let (gone, kept): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|key| key.contains("-STATE."));
        assert!(gone.len() == 1 && !kept.is_empty(), "{gone:?} {kept:?}");
        blobs.remove(&gone).await.unwrap();
    });
    let reader = reading(&emulator, replaced);
    let read = reader.load(&sample.owner, &task.id, sample.now).await;
    assert!(read.unwrap().as_ref() == Some(&second));
}

#[tokio::test]
async fn a_missing_object_is_an_error_without_endless_reads() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "missing").unwrap();
    let records = &emulator.records;
    let message = Message::from_user("m-1", vec![Part::text(noise(1, LARGE))]);
    let id = TaskId::made_of(sample.number());
    let mut task = sample.task_saying(&sample.owner, id, message).unwrap();
    stored::arrange(&mut task);
    records.commit(&sample.create(&task)).await.unwrap();
    let context = ContextId::parse("c:1").unwrap();
    let write = thread(&sample, &context, 0, LARGE);
    assert!(records.put_thread(&write).await.unwrap());
    let key = TaskKey::new(&sample.owner, &task.id);
    for folder in [
        key.folder(),
        ThreadKey::new(&sample.owner, &context).folder(),
    ] {
        let below = format!("v1/{folder}/");
        assert_eq!(
            a2a_lambda::store::remove_below(&emulator.blobs, &below)
                .await
                .unwrap(),
            1
        );
    }
    let read = records.load(&sample.owner, &task.id, sample.now).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    let read = records.load_thread(&sample.owner, &context).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
}

/// The checksum headers of the requests that begin a multipart upload.
#[derive(Debug, Clone, Default)]
struct Begun(Arc<Mutex<Vec<Option<String>>>>);

impl Intercept for Begun {
    fn name(&self) -> &'static str {
        "begun"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        if request.method() == "POST" && request.uri().contains("?uploads") {
            let kind = request.headers().get("x-amz-checksum-algorithm");
            self.0.lock().unwrap().push(kind.map(str::to_owned));
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_multipart_upload_announces_the_checksum_of_its_parts() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "announced").unwrap();
    let begun = Begun::default();
    let config = emulator.clients.s3.config().to_builder();
    let client = aws_sdk_s3::Client::from_conf(config.interceptor(begun.clone()).build());
    let blobs = S3Blobs::new(client, BUCKET);
    let task = sample.task().unwrap().key();
    let key = format!("v1/{}/announced", task.folder());
    // Large enough for a multipart upload.
    let mut source: BlobReader = Box::pin(std::io::Cursor::new(vec![7; 9 * 1024 * 1024]));
    let measured = blobs.put_from(&task, &key, &mut source).await.unwrap();
    assert_eq!(measured.size, 9 * 1024 * 1024);
    assert_eq!(
        begun.0.lock().unwrap().as_slice(),
        [Some("CRC32".to_owned())]
    );
}

/// The number of requests that abort a multipart upload.
#[derive(Debug, Clone, Default)]
struct Aborted(Arc<AtomicUsize>);

impl Aborted {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Intercept for Aborted {
    fn name(&self) -> &'static str {
        "aborted"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request();
        if request.method() == "DELETE" && request.uri().contains("uploadId=") {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// A reader that fails.
struct Broken;

impl AsyncRead for Broken {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Poll::Ready(Err(std::io::Error::other("the file broke off")))
    }
}

#[tokio::test]
async fn only_an_upload_that_fails_is_aborted() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "aborted").unwrap();
    let aborted = Aborted::default();
    let config = emulator.clients.s3.config().to_builder();
    let client = aws_sdk_s3::Client::from_conf(config.interceptor(aborted.clone()).build());
    let blobs = S3Blobs::new(client, BUCKET);
    let task = sample.task().unwrap().key();
    let key = |name: &str| format!("v1/{}/{name}", task.folder());
    // Large enough for a multipart upload.
    let bytes = || std::io::Cursor::new(vec![7; 9 * 1024 * 1024]);
    let from = Blob {
        key: key("from"),
        size: 9 * 1024 * 1024,
        sha256: String::new(),
        upload: None,
    };
    assert!(!blobs.copy(&task, &from, &key("early")).await.unwrap());
    assert_eq!(aborted.count(), 1, "the source is missing");
    let mut source: BlobReader = Box::pin(bytes().chain(Broken));
    let broken = blobs.put_from(&task, &from.key, &mut source).await;
    assert!(matches!(broken, Err(StoreError::Source(_))), "{broken:?}");
    assert_eq!(aborted.count(), 2, "the file broke off");

    let mut source: BlobReader = Box::pin(bytes());
    blobs.put_from(&task, &from.key, &mut source).await.unwrap();
    assert!(blobs.copy(&task, &from, &key("to")).await.unwrap());
    assert_eq!(aborted.count(), 2);
}

/// Refuses every read, as S3 does for a missing object if the role may not list.
struct Denies {
    /// Runs before the first refusal; reads at the same time wait for it.
    meanwhile: tokio::sync::Mutex<Option<BoxFuture<'static, ()>>>,
}

#[async_trait]
impl BlobHooks for Denies {
    async fn get(&self, _: &dyn Blobs, _: &str) -> Result<Option<Bytes>, StoreError> {
        let mut meanwhile = self.meanwhile.lock().await;
        if let Some(meanwhile) = meanwhile.take() {
            meanwhile.await;
        }
        Err(StoreError::Denied("no".to_owned()))
    }
}

#[tokio::test]
async fn a_denied_object_is_an_outage_while_its_record_names_it() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "denied").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let says = Change::Update {
        message: Some(Message::from_agent("m", vec![Part::text(noise(2, LARGE))])),
        metadata: Default::default(),
    };
    let changes = [sample.start(), says, Change::Complete { message: None }];
    let task = sample.committed(&stores, &task, changes).await.unwrap();
    let load = async |meanwhile: Option<BoxFuture<'static, ()>>| {
        let denies = Denies {
            meanwhile: tokio::sync::Mutex::new(meanwhile),
        };
        let denies = BlobLayer::new(Arc::new(emulator.blobs.clone()), denies);
        let records = dynamodb::records(emulator.clients.dynamodb.clone(), TABLE);
        let records = records.with_blobs(denies);
        records.load(&sample.owner, &task.id, sample.now).await
    };
    let denied = load(None).await;
    assert!(matches!(denied, Err(StoreError::Denied(_))), "{denied:?}");
    let (records, ended) = (
        emulator.records.clone(),
        task.with_expiry(sample.write_id(), sample.at(-1)),
    );
    let write = sample.update(&ended, &task);
    let deleted = Box::pin(async move {
        assert_eq!(records.commit(&write).await.unwrap(), CommitResult::Done);
        assert!(records.remove_task(&ended).await.unwrap());
    });
    let gone = load(Some(deleted)).await;
    assert!(matches!(gone, Ok(None)), "{gone:?}");
}
