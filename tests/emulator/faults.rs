//! Lost replies. Whatever fails on the connection, the store's result agrees with what is
//! stored.

use a2a_lambda::store::ReadBlobs as _;
use a2a_lambda::store::contract::{SampleData, noise};
use a2a_lambda::store::counters::{Counter, Counters};
use a2a_lambda::store::dynamodb::DynamoTable;
use a2a_lambda::store::limits::{Limits, Total};
use a2a_lambda::store::records::Records;
use a2a_lambda::store::s3::S3Blobs;
use a2a_lambda::store::{Blobs as _, CommitResult, StoreError, TaskWrite};
use a2a_lambda::task::{Blob, Change, ContextId, Message, Part, TaskId, TaskKey};
use a2a_lambda_rows::each_row_async;
use a2a_lambda_tests::emulator::{Emulator, run};
use a2a_lambda_tests::faulty::{Fault, FaultyLine};
use a2a_local::embedded::{BUCKET, TABLE};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition, TokenBucket};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A store behind a faulty line, beside one with a direct connection.
struct FaultTest {
    emulator: Emulator,
    line: FaultyLine,
    table: DynamoTable,
    far: Records,
    sample: SampleData,
}

impl FaultTest {
    async fn new(case: &'static str) -> Self {
        let emulator = Emulator::start().await.unwrap();
        let line = FaultyLine::to(emulator.dynamodb).await.unwrap();
        let config = emulator.clients.dynamodb.config().to_builder();
        // The SDK's three attempts, without the seconds between them.
        let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
        // The stores of a process share one budget of retries, which these tests would use up.
        let budget = RetryPartition::custom(case).token_bucket(TokenBucket::unlimited());
        let config = config
            .endpoint_url(line.url())
            .retry_config(retries)
            .retry_partition(budget.build());
        let table = DynamoTable::new(Client::from_conf(config.build()), TABLE);
        let far = Records::new(Arc::new(table.clone()));
        let sample = SampleData::new(run(), case).unwrap();
        Self {
            emulator,
            line,
            table,
            far,
            sample,
        }
    }

    /// Commits over the line and asserts that the commit is done, stored once and complete.
    async fn commits(&self, write: &TaskWrite, faults: &[Fault]) {
        self.line.spoil(faults);
        let answer = self.far.commit(write).await;
        assert_eq!(answer.unwrap(), CommitResult::Done, "{faults:?}");
        assert!(self.line.spent(), "{faults:?}");
        let records = &self.emulator.records;
        let task = &write.record;
        let found = records.load(&task.owner, &task.id, write.now).await;
        assert_eq!(found.unwrap().as_ref(), Some(task), "{faults:?}");
        if let Some(thread) = &write.thread {
            let id = &thread.record.context_id;
            let found = records.load_thread(&task.owner, id).await.unwrap();
            assert_eq!(found.as_ref(), Some(&thread.record), "{faults:?}");
        }
    }
}

/// Faults of one write: at most as many as the SDK retries.
const FAULTS: [&[Fault]; 9] = [
    &[Fault::Pass],
    &[Fault::Refuse],
    &[Fault::DropReply],
    &[Fault::CutReply],
    &[Fault::Refuse, Fault::DropReply],
    &[Fault::DropReply, Fault::DropReply],
    &[Fault::DropReply, Fault::CutReply],
    &[Fault::DropReply, Fault::Refuse],
    &[Fault::DropReply, Fault::DropReply, Fault::DropReply],
];

#[tokio::test]
async fn a_commit_with_a_lost_reply_is_found_done() {
    let fault_test = FaultTest::new("commit").await;
    let sample = &fault_test.sample;
    for faults in FAULTS {
        let task = sample.task().unwrap();
        let mut create = sample.create(&task);
        create.has_pointer = true;
        fault_test.commits(&create, faults).await;
        let working = sample.next(&task, [sample.start()]).unwrap();
        fault_test
            .commits(&sample.update(&working, &task), faults)
            .await;
    }
}

#[tokio::test]
async fn a_commit_of_task_and_thread_with_a_lost_reply_is_found_done() {
    let fault_test = FaultTest::new("transaction").await;
    let sample = &fault_test.sample;
    for faults in FAULTS {
        let task = sample.task().unwrap();
        let mut create = sample.create(&task);
        create.thread = Some(sample.thread(&sample.owner, &task.context_id, 0));
        fault_test.commits(&create, faults).await;
        let working = sample.next(&task, [sample.start()]).unwrap();
        let mut update = sample.update(&working, &task);
        update.thread = Some(sample.thread(&sample.owner, &task.context_id, 1));
        fault_test.commits(&update, faults).await;
    }
}

#[tokio::test]
async fn a_commit_with_child_items_and_a_lost_reply_is_found_done() {
    let fault_test = FaultTest::new("children").await;
    let sample = &fault_test.sample;
    for faults in FAULTS {
        let text = vec![Part::text(noise(1, 9_000))];
        let message = Message::from_user("m", text);
        let id = TaskId::made_of(sample.number());
        let task = sample.task_saying(&sample.owner, id, message.clone());
        let task = task.unwrap();
        fault_test.commits(&sample.create(&task), faults).await;
        let says = Change::Complete {
            message: Some(message),
        };
        let ended = sample.next(&task, [sample.start(), says]).unwrap();
        fault_test
            .commits(&sample.update(&ended, &task), faults)
            .await;
    }
}

#[tokio::test]
async fn a_thread_write_with_a_lost_reply_is_found_done() {
    let fault_test = FaultTest::new("thread").await;
    let sample = &fault_test.sample;
    each_row_async(FAULTS, async |faults| {
        let id = sample.task().unwrap().context_id.clone();
        for version in [0, 1] {
            let mut write = sample.thread(&sample.owner, &id, version);
            if version == 1 {
                write.record.state = Default::default();
            }
            fault_test.line.spoil(faults);
            let answer = fault_test.far.put_thread(&write).await;
            assert!(
                matches!(answer, Ok(true)),
                "{version} {faults:?} {answer:?}"
            );
            assert!(fault_test.line.spent(), "{version} {faults:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_conflict_stays_a_conflict_after_lost_replies() {
    let fault_test = FaultTest::new("conflict").await;
    let sample = &fault_test.sample;
    for faults in [&[Fault::DropReply][..], &[Fault::DropReply, Fault::Refuse]] {
        let task = sample.task().unwrap();
        let records = &fault_test.emulator.records;
        records.commit(&sample.create(&task)).await.unwrap();
        let working = sample.next(&task, [sample.start()]).unwrap();
        let winner = sample.update(&working, &task);
        records.commit(&winner).await.unwrap();
        let loser = sample.next(&task, [sample.start()]).unwrap();
        fault_test.line.spoil(faults);
        let answer = fault_test.far.commit(&sample.update(&loser, &task)).await;
        let current = Some(working);
        assert_eq!(
            answer.unwrap(),
            CommitResult::Conflict(current),
            "{faults:?}"
        );
    }
}

#[tokio::test]
async fn a_store_without_replies_is_unavailable_not_done_or_in_conflict() {
    let fault_test = FaultTest::new("silent").await;
    let sample = &fault_test.sample;
    for fault in [Fault::Refuse, Fault::DropReply] {
        let task = sample.task().unwrap();
        let write = sample.create(&task);
        fault_test.line.spoil_all(fault);
        let answer = fault_test.far.commit(&write).await;
        assert!(
            matches!(answer, Err(StoreError::Unavailable(_))),
            "{answer:?}"
        );
        // The same write again, once the store replies: it is stored once.
        fault_test.line.spoil(&[]);
        assert_eq!(
            fault_test.far.commit(&write).await.unwrap(),
            CommitResult::Done
        );
        let records = &fault_test.emulator.records;
        let found = records.load(&sample.owner, &task.id, sample.now).await;
        assert_eq!(found.unwrap(), Some(task));
    }
}

#[tokio::test]
async fn a_heartbeat_without_a_reply_is_an_error() {
    let fault_test = FaultTest::new("heartbeat").await;
    let sample = &fault_test.sample;
    let stores = fault_test.emulator.stores();
    let task = sample.task().unwrap();
    sample.stored(&stores, &task).await.unwrap();
    let task = sample.committed(&stores, &task, [sample.start()]).await;
    let task = task.unwrap();
    let beat = async || {
        let until = sample.at(120_000);
        fault_test.far.heartbeat(&task, until).await
    };
    fault_test.line.spoil_all(Fault::Refuse);
    let unheard = beat().await;
    assert!(
        matches!(unheard, Err(StoreError::Unavailable(_))),
        "{unheard:?}"
    );
    fault_test.line.spoil(&[]);
    assert!(beat().await.unwrap());
}

/// DynamoDB's reply when the table throttles.
const THROTTLED: Fault = Fault::Answer(concat!(
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n",
    "content-type: application/x-amz-json-1.0\r\n\r\n",
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#"#,
    r#"ProvisionedThroughputExceededException","message":"m"}"#,
));

#[tokio::test]
async fn a_throttled_write_is_repeated_and_done_once() {
    let fault_test = FaultTest::new("throttled").await;
    let sample = &fault_test.sample;
    // The SDK tries three times.
    for times in [1, 2] {
        let task = sample.task().unwrap();
        fault_test
            .commits(&sample.create(&task), &vec![THROTTLED; times])
            .await;
        let id = ContextId::parse(format!("throttled:{times}")).unwrap();
        let mut write = sample.thread(&sample.owner, &id, 0);
        write.record.state_expires_at = sample.now;
        let session = &mut write.record.state.session;
        session.insert("k".to_owned(), "v".into());
        assert!(
            fault_test
                .emulator
                .records
                .put_thread(&write)
                .await
                .unwrap()
        );
        fault_test.line.spoil(&vec![THROTTLED; times]);
        let removed = fault_test
            .far
            .sweep()
            .remove_state(&sample.owner, &id, sample.now)
            .await;
        assert!(removed.unwrap().state, "{times}");
        assert!(fault_test.line.spent(), "{times}");
    }
}

#[tokio::test]
async fn a_tenant_erasure_succeeds_despite_throttling() {
    let fault_test = FaultTest::new("erase-throttled").await;
    let (sample, blobs) = (&fault_test.sample, &fault_test.emulator.blobs);
    // Each of the two kinds of request in turn.
    for passing in [0, 1] {
        let task = sample.task().unwrap();
        sample
            .stored(&fault_test.emulator.stores(), &task)
            .await
            .unwrap();
        let mut faults = vec![Fault::Pass; passing];
        faults.extend([THROTTLED; 3]);
        fault_test.line.spoil(&faults);
        let tenant = &sample.owner.tenant;
        let erased = fault_test.table.erase_tenant(tenant, blobs, &|_| ()).await;
        // The task and the pointer to it.
        assert_eq!(erased.unwrap().items, 2, "{passing}");
        assert!(fault_test.line.spent(), "{passing}");
    }
}

#[tokio::test]
async fn a_push_config_removal_with_a_lost_reply_is_done() {
    let fault_test = FaultTest::new("webhook").await;
    let sample = &fault_test.sample;
    each_row_async(FAULTS, async |faults| {
        let (task, push) = sample
            .listened(&fault_test.emulator.stores())
            .await
            .unwrap();
        fault_test.line.spoil(faults);
        let id = &push.registration.id;
        let removed = fault_test
            .far
            .delete_push(&sample.owner, &task.id, id)
            .await;
        // After the third attempt there is no other.
        let heard = faults.len() < 3;
        assert_eq!(removed.is_ok(), heard, "{faults:?} {removed:?}");
        assert!(fault_test.line.spent(), "{faults:?}");
        let left = fault_test
            .far
            .pushes(&sample.owner, &task.id)
            .await
            .unwrap();
        assert_eq!(left, [], "{faults:?}");
    })
    .await;
}

#[tokio::test]
async fn a_removal_with_a_lost_reply_is_done() {
    let fault_test = FaultTest::new("removal").await;
    let (sample, records) = (&fault_test.sample, &fault_test.emulator.records);
    // The last of three requests removes the item that decides.
    let faults = [Fault::Pass, Fault::Pass, Fault::DropReply];
    // A context that is named after its task has no pointer to it.
    for named in [false, true] {
        let number = sample.number();
        let task = sample.new_task(&sample.owner, TaskId::made_of(number));
        let mut task = task.unwrap();
        if named {
            task.fields().context_id = ContextId::made_of(number);
        }
        records.commit(&sample.create(&task)).await.unwrap();
        fault_test.line.spoil(&faults);
        let removed = fault_test.far.remove_task(&task).await;
        assert!(matches!(removed, Ok(true)), "{named} {removed:?}");
        assert!(fault_test.line.spent(), "{named}");
        let found = records.load(&sample.owner, &task.id, sample.now).await;
        assert_eq!(found.unwrap(), None, "{named}");
    }
    let id = ContextId::parse("c:1").unwrap();
    let write = sample.thread(&sample.owner, &id, 0);
    assert!(records.put_thread(&write).await.unwrap());
    fault_test.line.spoil(&faults);
    let removed = fault_test.far.remove_thread(&write.record).await;
    assert!(matches!(removed, Ok(true)), "{removed:?}");
    assert!(fault_test.line.spent());
    let found = records.load_thread(&sample.owner, &id).await;
    assert_eq!(found.unwrap(), None);
}

/// DynamoDB's reply to a write of one item while a transaction uses the item.
const IN_USE: Fault = Fault::Answer(concat!(
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n",
    "content-type: application/x-amz-json-1.0\r\n\r\n",
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#"#,
    r#"TransactionConflictException","message":"m"}"#,
));

#[tokio::test]
async fn a_single_write_that_meets_a_transaction_is_repeated() {
    let fault_test = FaultTest::new("in-use").await;
    let sample = &fault_test.sample;
    let faults = [IN_USE; 2];
    // A put, an update and a delete.
    let task = sample.task().unwrap();
    fault_test.commits(&sample.create(&task), &faults).await;
    let working = sample.next(&task, [sample.start()]).unwrap();
    fault_test
        .commits(&sample.update(&working, &task), &faults)
        .await;
    let id = ContextId::parse("c:1").unwrap();
    let mut write = sample.thread(&sample.owner, &id, 0);
    write.record.state_expires_at = sample.now;
    assert!(
        fault_test
            .emulator
            .records
            .put_thread(&write)
            .await
            .unwrap()
    );
    fault_test.line.spoil(&faults);
    let removed = fault_test
        .far
        .sweep()
        .remove_state(&sample.owner, &id, sample.now)
        .await;
    assert!(removed.unwrap().state);
    assert!(fault_test.line.spent());
}

#[tokio::test]
async fn a_failing_request_is_attempted_three_times_and_no_more() {
    let fault_test = FaultTest::new("attempts").await;
    let sample = &fault_test.sample;
    let rows = [THROTTLED, MET, Fault::Refuse, Fault::CutReply];
    each_row_async(rows, async |fault| {
        let task = sample.task().unwrap();
        let mut write = sample.create(&task);
        write.thread = Some(sample.thread(&sample.owner, &task.context_id, 0));
        fault_test.line.spoil(&[fault; 3]);
        let answer = fault_test.far.commit(&write).await;
        // With a lost reply the write is stored, and one read finds it.
        let (found, requests) = match fault {
            Fault::CutReply => (matches!(answer, Ok(CommitResult::Done)), 4),
            Fault::Refuse => (matches!(answer, Err(StoreError::Unavailable(_))), 4),
            _ => (answer.is_err(), 3),
        };
        assert!(found, "{fault:?} {answer:?}");
        assert_eq!(fault_test.line.seen(), requests, "{fault:?}");
    })
    .await;
}

/// A bucket behind a faulty line.
async fn objects() -> (Emulator, FaultyLine, S3Blobs) {
    let emulator = Emulator::start().await.unwrap();
    let line = FaultyLine::to(emulator.s3).await.unwrap();
    let config = emulator.clients.s3.config().to_builder();
    let config = config.endpoint_url(line.url()).force_path_style(true);
    let far = S3Blobs::new(aws_sdk_s3::Client::from_conf(config.build()), BUCKET);
    (emulator, line, far)
}

#[tokio::test]
async fn an_object_put_with_a_lost_reply_is_found_done() {
    let (emulator, line, far) = objects().await;
    for (n, faults) in [[Fault::Refuse], [Fault::DropReply]].iter().enumerate() {
        let key = format!("v1/lost/{:x}/{n}", run());
        line.spoil(faults);
        far.put(&key, "bytes".into()).await.unwrap();
        assert!(line.spent(), "{faults:?}");
        let found = emulator.blobs.get(&key).await.unwrap();
        assert_eq!(found, Some("bytes".into()), "{faults:?}");
        let other = far.put(&key, "other".into()).await;
        assert!(matches!(other, Err(StoreError::Refused(_))), "{other:?}");
    }
}

/// S3's reply while another request for the same key runs.
const RACING: Fault = Fault::Answer(concat!(
    "HTTP/1.1 409 Conflict\r\nconnection: close\r\n\r\n",
    "<Error><Code>ConditionalRequestConflict</Code><Message>m</Message></Error>",
));

#[tokio::test]
async fn an_object_put_waits_for_a_concurrent_attempt_to_end() {
    let (emulator, line, far) = objects().await;
    let sample = SampleData::new(run(), "racing").unwrap();
    let task = TaskKey::new(&sample.owner, &TaskId::made_of(sample.number()));
    let key = |what: &str| format!("v1/faults/{:032x}/{what}", sample.number());
    let bytes = Bytes::from_static(b"once");
    line.spoil(&[RACING; 2]);
    let put = key("put");
    far.put(&put, bytes.clone()).await.unwrap();
    assert!(line.spent());
    line.spoil(&[RACING; 2]);
    let (from, to) = (blob(put, &bytes), key("copy"));
    assert!(far.copy(&task, &from, &to).await.unwrap());
    assert!(line.spent());
    assert_eq!(emulator.blobs.get(&to).await.unwrap(), Some(bytes));
    line.spoil_all(RACING);
    let away = far.put(&key("never"), Bytes::new()).await;
    assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
}

fn blob(key: String, bytes: &Bytes) -> Blob {
    Blob {
        key,
        size: bytes.len() as u64,
        sha256: String::new(),
        upload: None,
    }
}

/// More bytes than S3 copies in one request.
const LARGE: usize = 9 * 1024 * 1024;

/// S3's reply if an object exists under the key.
const EXISTS: Fault = Fault::Answer(concat!(
    "HTTP/1.1 412 Precondition Failed\r\nconnection: close\r\n\r\n",
    "<Error><Code>PreconditionFailed</Code><Message>m</Message></Error>",
));

/// S3's reply if the upload does not exist.
const NO_UPLOAD: Fault = Fault::Answer(concat!(
    "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n",
    "<Error><Code>NoSuchUpload</Code><Message>m</Message></Error>",
));

/// S3's reply if it keeps an object that it was to delete.
const KEPT: Fault = Fault::Answer(concat!(
    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/xml\r\n\r\n",
    "<DeleteResult><Error><Key>v1/1</Key><Code>InternalError</Code></Error></DeleteResult>",
));

/// A copy between two objects of the bucket.
struct Copying {
    task: TaskKey,
    from: Blob,
    to: String,
}

impl Copying {
    /// A copy of an object of this size. Its source is stored.
    async fn of(emulator: &Emulator, sample: &SampleData, size: usize) -> Self {
        let key = |what: &str| format!("v1/faults/{:032x}/{what}", sample.number());
        let (bytes, from) = (Bytes::from(vec![7; size]), key("from"));
        emulator.blobs.put(&from, bytes.clone()).await.unwrap();
        Self {
            task: TaskKey::new(&sample.owner, &TaskId::made_of(sample.number())),
            from: blob(from, &bytes),
            to: key("to"),
        }
    }

    /// Copies over a line with this fault at the request that makes the object. A large
    /// object has three requests before it: the begin and two parts.
    async fn copies(
        &self,
        line: &FaultyLine,
        far: &S3Blobs,
        last: Fault,
    ) -> Result<bool, StoreError> {
        let large = self.from.size == LARGE as u64;
        let mut faults = vec![Fault::Pass; if large { 3 } else { 0 }];
        faults.push(last);
        line.spoil(&faults);
        let copied = far.copy(&self.task, &self.from, &self.to).await;
        assert!(line.spent(), "{last:?} {large}");
        copied
    }
}

#[tokio::test]
async fn a_copy_with_a_lost_reply_is_found_done() {
    let (emulator, line, far) = objects().await;
    let sample = SampleData::new(run(), "copied").unwrap();
    for size in [6, LARGE] {
        let copying = Copying::of(&emulator, &sample, size).await;
        let copied = copying.copies(&line, &far, Fault::DropReply).await;
        assert!(matches!(copied, Ok(true)), "{size} {copied:?}");
        let found = emulator.blobs.get(&copying.to).await.unwrap();
        assert!(found == Some(Bytes::from(vec![7; size])), "{size}");
    }
}

#[tokio::test]
async fn a_copy_over_another_object_is_refused() {
    let (emulator, line, far) = objects().await;
    let sample = SampleData::new(run(), "exists").unwrap();
    for size in [6, LARGE] {
        // Our own earlier attempt, an object of another length, or none by now.
        for there in [Some(size), Some(size - 1), None] {
            let copying = Copying::of(&emulator, &sample, size).await;
            if let Some(there) = there {
                let bytes = Bytes::from(vec![7; there]);
                emulator.blobs.put(&copying.to, bytes).await.unwrap();
            }
            let copied = copying.copies(&line, &far, EXISTS).await;
            let ours = there == Some(size);
            match copied {
                Ok(done) => assert!(done && ours, "{size} {there:?}"),
                Err(StoreError::Refused(_)) => assert!(!ours, "{size} {there:?}"),
                Err(error) => panic!("{size} {there:?} {error:?}"),
            }
        }
    }
}

#[tokio::test]
async fn an_upload_gone_without_its_object_is_an_error() {
    let (emulator, line, far) = objects().await;
    let sample = SampleData::new(run(), "gone").unwrap();
    let copying = Copying::of(&emulator, &sample, LARGE).await;
    let copied = copying.copies(&line, &far, NO_UPLOAD).await;
    assert!(matches!(copied, Err(StoreError::Refused(_))), "{copied:?}");
    let found = emulator.blobs.head(&copying.to).await.unwrap();
    assert_eq!(found, None);
}

#[tokio::test]
async fn a_removal_of_an_object_that_s3_keeps_fails() {
    let (_emulator, line, far) = objects().await;
    line.spoil(&[KEPT]);
    let removed = far.remove(&["v1/1".to_owned()]).await;
    assert!(
        matches!(removed, Err(StoreError::Unavailable(_))),
        "{removed:?}"
    );
    assert!(line.spent());
}

/// A page of a list. S3 may return fewer keys than requested.
macro_rules! page {
    ($inside:literal) => {
        Fault::Answer(concat!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/xml\r\n\r\n",
            "<ListBucketResult>",
            $inside,
            "</ListBucketResult>",
        ))
    };
}

#[tokio::test]
async fn a_short_page_does_not_end_a_list() {
    let (_emulator, line, far) = objects().await;
    line.spoil(&[
        page!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>\
             <Contents><Key>v1/1</Key></Contents>"
        ),
        page!("<IsTruncated>true</IsTruncated><NextContinuationToken>b</NextContinuationToken>"),
        page!("<IsTruncated>false</IsTruncated><Contents><Key>v1/2</Key></Contents>"),
    ]);
    assert_eq!(far.keys("v1/", None, 9).await.unwrap(), ["v1/1", "v1/2"]);
    assert!(line.spent());
}

/// DynamoDB's reply when another transaction uses the same items.
const MET: Fault = Fault::Answer(concat!(
    "HTTP/1.1 400 Bad Request\r\nconnection: close\r\n",
    "content-type: application/x-amz-json-1.0\r\n\r\n",
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","#,
    r#""message":"m","CancellationReasons":[{"Code":"None"},"#,
    r#"{"Code":"TransactionConflict","Message":"m"},{"Code":"None"}]}"#,
));

#[tokio::test]
async fn a_commit_in_conflict_with_other_transactions_is_contended_and_not_stored() {
    let fault_test = FaultTest::new("met").await;
    let sample = &fault_test.sample;
    let task = sample.task().unwrap();
    let mut write = sample.create(&task);
    write.thread = Some(sample.thread(&sample.owner, &task.context_id, 0));
    fault_test.commits(&write, &[MET, MET]).await;

    let task = sample.task().unwrap();
    let mut write = sample.create(&task);
    write.thread = Some(sample.thread(&sample.owner, &task.context_id, 0));
    fault_test.line.spoil_all(MET);
    let answer = fault_test.far.commit(&write).await;
    assert!(
        matches!(answer, Err(StoreError::Contended(_))),
        "{answer:?}"
    );
    let thread = write.thread.as_ref().unwrap();
    let answer = fault_test.far.put_thread(thread).await;
    assert!(
        matches!(answer, Err(StoreError::Contended(_))),
        "{answer:?}"
    );
    fault_test.line.spoil(&[]);
    let found = fault_test
        .far
        .load(&sample.owner, &task.id, write.now)
        .await;
    assert_eq!(found.unwrap(), None);
}

#[tokio::test]
async fn a_counter_with_a_lost_reply_is_not_sent_again() {
    let fault_test = FaultTest::new("counters").await;
    let counter = |name: &str| Counter {
        series: name.to_owned(),
        amounts: BTreeMap::from([("n".to_owned(), 1)]),
    };
    let counters = Counters::new(fault_test.far.table());
    for (fault, sum) in [(Fault::DropReply, 1), (Fault::Refuse, 0)] {
        let name = format!("{fault:?} {}", fault_test.sample.owner.tenant);
        fault_test.line.spoil(&[fault]);
        let lost = counters.add_counters(0, &[counter(&name)]).await;
        assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
        assert_eq!(fault_test.line.seen(), 1);
        let stored = counters.read_counters().await.unwrap().into_iter();
        let found = stored
            .filter(|it| it.series == name)
            .map(|it| it.amounts["n"]);
        assert_eq!(found.sum::<u64>(), sum, "{fault:?}");
    }
}

#[tokio::test]
async fn a_total_is_sent_again_only_if_nothing_was_decided() {
    let fault_test = FaultTest::new("totals").await;
    let limits = Limits::new(fault_test.far.table());
    let total = Total::StoredBytes(fault_test.sample.owner.tenant.clone(), 1);
    let add = || limits.add(&total, 10, 30, fault_test.sample.expiry());
    // Stored and without a reply: 10, and the client hears of it.
    fault_test.line.spoil(&[Fault::DropReply]);
    assert!(matches!(add().await, Err(StoreError::Unavailable(_))));
    assert_eq!(fault_test.line.seen(), 1);
    // Throttled, so not stored: sent again, 20.
    fault_test.line.spoil(&[THROTTLED]);
    assert!(add().await.unwrap());
    assert_eq!(fault_test.line.seen(), 2);
    fault_test.line.spoil(&[]);
    // There is room for 10 more, and for no more.
    assert_eq!([add().await.unwrap(), add().await.unwrap()], [true, false]);
}
