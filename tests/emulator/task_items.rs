//! The items of a large task in the table.

use a2a_lambda::auth::Caller;
use a2a_lambda::engine::CallBudget;
use a2a_lambda::engine::{Engine, Policy, Services};
use a2a_lambda::prelude::*;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::dynamodb;
use a2a_lambda::store::{Blobs as _, CommitResult, Expect, StoreError, TaskWrite, stored};
use a2a_lambda::task::{
    Artifact, ArtifactUpdate, Change, Frame, Generation, Message, Metadata, OutputCounts, Owner,
    Part, PartContent, SendCommand, SendMode, SubscribeCommand, TaskKey, TaskRecord, ThreadKey,
    Timestamp,
};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_local::embedded::{BUCKET, TABLE};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::unbounded_channel;

type Item = HashMap<String, AttributeValue>;

/// The items of a task's partition, by name.
async fn items(emulator: &Emulator, task: &TaskKey) -> Vec<(String, Item)> {
    let partition = format!("T#{}#K#{}", task.tenant(), task.local());
    let mut items = Vec::new();
    let mut start = None;
    loop {
        let query = emulator.clients.dynamodb.query().table_name(TABLE);
        let found = query
            .key_condition_expression("PK = :pk")
            .expression_attribute_values(":pk", AttributeValue::S(partition.clone()))
            .consistent_read(true)
            .set_exclusive_start_key(start)
            .send()
            .await
            .unwrap();
        for item in found.items.unwrap_or_default() {
            items.push((item["SK"].as_s().unwrap().clone(), item));
        }
        start = found.last_evaluated_key;
        if start.is_none() {
            return items;
        }
    }
}

/// The bytes of an item as DynamoDB counts them, or a little more.
fn size(item: &Item) -> usize {
    let value = |value: &AttributeValue| match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::N(_) => 21,
        other => panic!("{other:?}"),
    };
    item.iter().map(|(name, it)| name.len() + value(it)).sum()
}

fn number(item: &Item, name: &str) -> i64 {
    item[name].as_n().unwrap().parse().unwrap()
}

fn says(length: usize) -> Change {
    let text = vec![Part::text(noise(length as u64, length))];
    Change::Update {
        message: Some(Message::from_agent("m", text)),
        metadata: Metadata::new(),
    }
}

fn keeps(length: usize) -> Change {
    Change::Save {
        key: "k".to_owned(),
        value: noise(1, length).into(),
        outputs: OutputCounts::new(),
        reads: Vec::new(),
        save_place: Box::default(),
        order: None,
    }
}

#[tokio::test]
async fn no_item_exceeds_its_limit_and_children_name_their_incarnation() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "limits").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let mut task = sample
        .committed(&stores, &task, [sample.start()])
        .await
        .unwrap();
    for length in [100, 5_000, 150_000, 390_000, 410_000, 1_100_000] {
        let changes = [says(length), keeps(length), says(9)];
        task = sample.committed(&stores, &task, changes).await.unwrap();
    }
    let all = items(&emulator, &task.key()).await;
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 6, "{names:?}");
    let lifetime = sample.expiry().since(sample.now);
    for (name, item) in &all {
        assert!(size(item) <= 400 * 1024, "{name}: {}", size(item));
        if name == "META" {
            assert!(size(item) < 8 * 1024, "{}", size(item));
            continue;
        }
        assert!(number(item, "version") <= i64::try_from(task.version).unwrap());
        assert_eq!(item["incarnation"], all_of(&all, "META")["incarnation"]);
        let stays = sample.expiry().plus(lifetime);
        assert_eq!(number(item, "ttl"), stays.ttl_seconds(), "{name}");
    }
}

fn all_of<'a>(items: &'a [(String, Item)], name: &str) -> &'a Item {
    &items.iter().find(|(found, _)| found == name).unwrap().1
}

fn delivers(length: usize) -> Change {
    Change::Artifact(ArtifactUpdate {
        artifact: Artifact {
            chunks_of: None,
            id: "a".to_owned(),
            name: None,
            description: None,
            parts: vec![Part::text(noise(2, length))],
            extensions: Vec::new(),
            metadata: Metadata::new(),
        },
        append: false,
        last_chunk: false,
        metadata: Metadata::new(),
    })
}

#[tokio::test]
async fn content_of_more_than_32_kb_when_compressed_is_an_object() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "edges").unwrap();
    let stores = emulator.stores();
    // A value has half of its size when it is compressed. A child has its text twice, in an event
    // and in an artifact or message.
    for (kilobytes, child, state) in [
        (20, "body", None),
        (40, "object", Some("body")),
        (70, "object", Some("object")),
    ] {
        let size = kilobytes * 1024;
        let task = sample.task().unwrap();
        sample.stored(&stores, &task).await.unwrap();
        let mut task = sample
            .committed(&stores, &task, [sample.start()])
            .await
            .unwrap();
        for change in [delivers(size), says(size), keeps(size)] {
            task = sample.committed(&stores, &task, [change]).await.unwrap();
        }
        let all = items(&emulator, &task.key()).await;
        let (moved, rest): (Vec<_>, Vec<_>) =
            all.iter().partition(|(name, _)| name.starts_with("EVT#"));
        assert!(moved.len() > 1, "{kilobytes}");
        let is = |item: &Item, wanted| {
            ["body", "object"]
                .iter()
                .all(|it| item.contains_key(*it) == (*it == wanted))
        };
        assert!(moved.iter().all(|(_, item)| is(item, child)), "{kilobytes}");
        let stored = rest.iter().find(|(name, _)| name == "STATE");
        assert_eq!(stored.is_some(), state.is_some(), "{kilobytes}");
        assert!(
            stored.is_none_or(|(_, item)| is(item, state.unwrap())),
            "{kilobytes}"
        );
        // The 32 KiB limit also holds for the state of a thread.
        let mut thread = sample.thread(&sample.owner, &task.context_id, 0);
        thread.record.state.session = [("k".to_owned(), noise(1, size).into())].into();
        assert!(emulator.records.put_thread(&thread).await.unwrap());
        let folder = ThreadKey::new(&sample.owner, &task.context_id).folder();
        let below = format!("v1/{folder}/");
        let kept = emulator.blobs.keys(&below, None, 10).await.unwrap();
        assert_eq!(kept.len(), usize::from(size > 64 * 1024), "{kilobytes}");
    }
}

#[tokio::test]
async fn a_child_is_never_overwritten_and_lives_as_long_as_its_task() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "children").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let task = sample.committed(&stores, &task, [sample.start(), says(9_000)]);
    let task = task.await.unwrap();
    let before = items(&emulator, &task.key()).await;
    assert!(before.len() > 1);

    // Another commit with the same child names. The condition on META holds, which cannot
    // happen in practice, and the existing children make the commit fail.
    let mut form = stored::encode(&task);
    form["writeIds"] = serde_json::json!([sample.write_id().to_string()]);
    let other = stored::decode(form).unwrap();
    let write = sample.write(
        &other,
        Expect::Version {
            version: task.version,
            incarnation: task.incarnation.clone(),
            kept_until: task.kept_until,
        },
    );
    let answer = emulator.records.commit(&write).await;
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(items(&emulator, &task.key()).await, before);

    // Hours later: children outlive their task.
    let mut task = task;
    each_row_async([1, 2, 4, 9], async |hours| {
        let now = sample.at(hours * 3_600_000);
        let expires = now.plus(Duration::from_secs(3_600));
        let next = task.next([says(10)], sample.write_id(), now, expires);
        let mut next = next.unwrap();
        stored::arrange(&mut next);
        let write = TaskWrite {
            now,
            ..sample.update(&next, &task)
        };
        let done = emulator.records.commit(&write).await.unwrap();
        assert_eq!(done, CommitResult::Done);
        for (name, item) in items(&emulator, &next.key()).await {
            if name != "META" {
                assert!(
                    number(&item, "ttl") >= expires.ttl_seconds(),
                    "{hours} {name}"
                );
            }
        }
        task = next;
    })
    .await;
}

#[tokio::test]
async fn items_that_outlive_their_task_show_nothing() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "outlived").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let task = sample.committed(&stores, &task, [sample.start(), says(9_000)]);
    let task = task.await.unwrap();
    // Native TTL removes the items of a task in any order.
    let key = task.key();
    let partition = format!("T#{}#K#{}", key.tenant(), key.local());
    let removed = emulator.clients.dynamodb.delete_item().table_name(TABLE);
    removed
        .key("PK", AttributeValue::S(partition))
        .key("SK", AttributeValue::S("META".to_owned()))
        .send()
        .await
        .unwrap();
    let left = items(&emulator, &key).await;
    assert!(left.iter().any(|(name, _)| name.starts_with("EVT#")));
    let (records, owner, now) = (&emulator.records, &task.owner, sample.now);
    let tail = records.tail(owner, &task.id, 0, now).await;
    assert_eq!(tail.unwrap(), None);
    let found = records.load(owner, &task.id, now).await;
    assert_eq!(found.unwrap(), None);
}

#[tokio::test]
async fn an_object_with_other_bytes_is_an_error() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "object").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let changes = [sample.start(), keeps(300_000)];
    let task = sample.committed(&stores, &task, changes).await.unwrap();
    let all = items(&emulator, &task.key()).await;
    let name = all_of(&all, "STATE")["object"].as_s().unwrap().clone();
    assert!(name.starts_with("v1/"), "{name}");
    let read = || async {
        let found = emulator.clients.s3.get_object().bucket(BUCKET).key(&name);
        let found = found.send().await.unwrap().body.collect().await.unwrap();
        found.to_vec()
    };
    // One byte is replaced, or the whole text.
    let mut same_length = read().await;
    let middle = same_length.len() / 2;
    same_length[middle] ^= 1;
    for bytes in [same_length, b"other bytes".to_vec()] {
        let put = emulator.clients.s3.put_object().bucket(BUCKET).key(&name);
        put.body(bytes.into()).send().await.unwrap();
        let read = emulator.records.load(&task.owner, &task.id, sample.now);
        let read = read.await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }
}

#[tokio::test]
async fn without_a_bucket_content_too_large_for_an_item_is_refused() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "no bucket").unwrap();
    let store = dynamodb::records(emulator.clients.dynamodb.clone(), TABLE);
    let task = sample.task().unwrap();
    store.commit(&sample.create(&task)).await.unwrap();
    let fits = sample
        .next(&task, [sample.start(), keeps(700_000)])
        .unwrap();
    let done = store.commit(&sample.update(&fits, &task)).await.unwrap();
    assert_eq!(done, CommitResult::Done);
    let large = sample.next(&fits, [keeps(900_000)]).unwrap();
    let answer = store.commit(&sample.update(&large, &fits)).await;
    assert!(matches!(answer, Err(StoreError::TooLarge(_))), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_tail_sees_every_event_once_and_in_order_during_writes() {
    let emulator = Arc::new(Emulator::start().await.unwrap());
    let sample = SampleData::new(run(), "beside").unwrap();
    let stores = emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let mut task = sample
        .committed(&stores, &task, [sample.start()])
        .await
        .unwrap();
    let reads = {
        let (emulator, owner) = (Arc::clone(&emulator), task.owner.clone());
        let (id, now) = (task.id.clone(), sample.now);
        tokio::spawn(async move {
            let (mut seen, mut reads) = (0, 0);
            loop {
                let tail = emulator.records.tail(&owner, &id, seen, now).await;
                let tail = tail.unwrap().unwrap();
                reads += 1;
                for event in tail.events {
                    seen += 1;
                    assert_eq!(event.seq, seen);
                }
                assert_eq!(seen, tail.last_seq);
                if tail.state.is_terminal() {
                    return (seen, reads);
                }
            }
        })
    };
    for _ in 0..80 {
        let next = sample.next(&task, [says(700), says(10)]).unwrap();
        let done = emulator.records.commit(&sample.update(&next, &task)).await;
        assert_eq!(done.unwrap(), CommitResult::Done);
        task = next;
    }
    let ends = Change::Complete { message: None };
    let ended = sample.next(&task, [ends]).unwrap();
    let done = emulator.records.commit(&sample.update(&ended, &task)).await;
    assert_eq!(done.unwrap(), CommitResult::Done);
    let (seen, reads) = reads.await.unwrap();
    assert_eq!(seen, ended.events_after(0).count() as u64);
    assert!(reads > 20, "{reads}");
}

/// The number of chunks of a long stream.
const CHUNKS: usize = 2_000;

/// Emits chunks of one artifact, each with its number.
#[skill(id = "chunks", tags = ["test"])]
async fn chunks(cx: &mut TaskContext<'_>, _: Content) -> AgentResult<String> {
    let mut chunks = cx.artifact_chunks("numbers");
    for n in 0..CHUNKS {
        chunks.push(format!("chunk-{n} ")).await?;
    }
    chunks.finish().await?;
    Ok("done".to_owned())
}

/// An HTTP client or connector that records the size of every write to the table.
#[derive(Debug, Clone)]
struct Counting<T> {
    inner: T,
    writes: Arc<Mutex<Vec<usize>>>,
}

impl HttpClient for Counting<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(Counting {
            inner: self.inner.http_connector(settings, components),
            writes: Arc::clone(&self.writes),
        })
    }
}

impl HttpConnector for Counting<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let writes = ["PutItem", "UpdateItem", "TransactWriteItems"];
        if writes.iter().any(|name| target.ends_with(name)) {
            let bytes = request.body().bytes().map_or(0, <[u8]>::len);
            self.writes.lock().unwrap().push(bytes);
        }
        self.inner.call(request)
    }
}

fn engine(emulator: &Emulator, writes: &Arc<Mutex<Vec<usize>>>) -> Engine {
    let config = emulator.clients.dynamodb.config();
    let inner = config.http_client().unwrap();
    let config = config.to_builder().http_client(Counting {
        inner,
        writes: Arc::clone(writes),
    });
    let client = aws_sdk_dynamodb::Client::from_conf(config.build());
    let store = dynamodb::records(client, TABLE).with_blobs(Arc::new(emulator.blobs.clone()));
    let agent = Agent::builder("chunks").skill(chunks).build().unwrap();
    let services = Services::new(store, Arc::new(emulator.blobs.clone()));
    let policy = Policy {
        flush_interval: Duration::from_millis(1),
        ..Policy::default()
    };
    Engine::new(Arc::new(agent), services, policy)
}

fn caller(owner: &Owner) -> Caller {
    Caller {
        owner: owner.clone(),
        tier: "default".to_owned(),
        scopes: Default::default(),
    }
}

#[tokio::test]
async fn writes_of_a_2000_chunk_stream_do_not_grow() {
    let emulator = Emulator::start().await.unwrap();
    let sample = SampleData::new(run(), "stream").unwrap();
    let writes = Arc::<Mutex<Vec<usize>>>::default();
    let engine = engine(&emulator, &writes);
    let caller = caller(&sample.owner);
    let (frames, mut shown) = unbounded_channel();
    let streamed = engine.stream(&caller, go(), CallBudget::default(), frames);
    Box::pin(streamed).await.unwrap();
    let mut live = Vec::new();
    let mut id = None;
    while let Some(frame) = shown.recv().await {
        match frame {
            Frame::Task(task) => id = Some(task.id.clone()),
            Frame::Event { event, .. } => live.push(event),
            other => panic!("{other:?}"),
        }
    }
    let id = id.unwrap();

    let now = Timestamp::from_millis(0);
    let stored = emulator.records.load(&sample.owner, &id, now).await;
    let stored: TaskRecord = stored.unwrap().unwrap();
    let events: Vec<_> = stored.events_after(0).cloned().collect();
    assert!(events.ends_with(&live), "the stream is the end of the log");
    let view = stored.view(10, true);
    let parts = &view.artifacts.unwrap()[0].parts;
    let text = parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.as_str(),
        other => panic!("{other:?}"),
    });
    let text: String = text.collect();
    let expected: String = (0..CHUNKS).map(|n| format!("chunk-{n} ")).collect();
    assert_eq!(text, expected);

    bounded(&writes.lock().unwrap(), events.len());
    for seen in (0..events.len()).step_by(97) {
        let command = SubscribeCommand {
            id: id.clone(),
            last_event: Some(events[seen].id),
            generation: Generation::V10,
        };
        let (frames, mut shown) = unbounded_channel();
        let resumed = engine
            .reader()
            .subscribe(&caller, &command, CallBudget::default(), frames);
        Box::pin(resumed).await.unwrap();
        let mut after = Vec::new();
        while let Some(frame) = shown.recv().await {
            if let Frame::Event { event, .. } = frame {
                after.push(event);
            }
        }
        assert!(after == events[seen + 1..], "after {seen}");
    }
}

fn go() -> SendCommand {
    SendCommand {
        message: Message::from_user("m-1", vec![Part::text("go")]),
        client_task_id: None,
        idempotency_key: None,
        mode: SendMode::Blocking,
        history_length: 10,
        accepted_output_modes: Vec::new(),
        push: None,
        metadata: Metadata::new(),
        generation: Generation::V10,
    }
}

/// Asserts that no write is large, and that later writes are no larger than earlier ones.
fn bounded(writes: &[usize], events: usize) {
    let (largest, all): (usize, usize) =
        (writes.iter().copied().max().unwrap(), writes.iter().sum());
    println!(
        "{events} events in {} writes of {all} bytes, the largest {largest}",
        writes.len(),
    );
    // A group has at most 64 events. If a commit wrote the whole task, the last ones alone
    // would have hundreds of kilobytes.
    assert!(largest < 64 * 1024, "{largest}");
    let (first, last) = writes.split_at(writes.len() / 2);
    let (first, last): (usize, usize) = (first.iter().sum(), last.iter().sum());
    assert!(last < first * 3 / 2, "{first} bytes, then {last}");
}
