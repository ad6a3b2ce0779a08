use super::*;
use crate::engine::error::Cause;
use crate::engine::{Policy, SystemClock};
use crate::store::contract::SampleData;
use crate::store::memory::MemoryStore;
use crate::store::{Blobs, Measured, StoreError};
use crate::task::{Artifact, Metadata, StatusUpdate, TaskId, Timestamp};
use crate::testing::{BlobHooks, BlobLayer};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Makes URLs and counts the bytes that are read.
#[derive(Default)]
struct Shelf {
    links: bool,
    read: AtomicUsize,
    /// Objects that are being read now.
    open: AtomicUsize,
    /// The most objects read at the same time.
    most: AtomicUsize,
}

#[async_trait]
impl BlobHooks for Shelf {
    async fn get(&self, blobs: &dyn Blobs, key: &str) -> Result<Option<Bytes>, StoreError> {
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.open.fetch_sub(1, Ordering::SeqCst);
        let found = blobs.get(key).await?;
        let read = found.as_ref().map_or(0, Bytes::len);
        self.read.fetch_add(read, Ordering::SeqCst);
        Ok(found)
    }

    async fn read_url(
        &self,
        _: &dyn Blobs,
        download: &Download<'_>,
        _now: Timestamp,
        lifetime: Duration,
    ) -> Result<Option<String>, StoreError> {
        assert!(lifetime <= Duration::from_secs(300));
        let Download {
            key,
            content_type,
            disposition,
        } = download;
        let url = format!("https://x/{key}?{content_type}&{disposition}");
        Ok(self.links.then_some(url))
    }
}

struct Desk {
    shelf: Arc<BlobLayer<Shelf>>,
    reader: Reader,
}

impl Desk {
    fn new(links: bool, response_max: usize) -> Self {
        let shelf = Shelf {
            links,
            ..Shelf::default()
        };
        let store = MemoryStore::new();
        let shelf = BlobLayer::new(store.blobs, shelf);
        let policy = Policy {
            response_max,
            ..Policy::default()
        };
        let records = store.records.reader().clone();
        let reader = Reader::new(records, shelf.clone(), Arc::new(SystemClock), policy);
        Self { shelf, reader }
    }

    async fn file(&self, key: &str, size: usize) -> Part {
        let bytes = Bytes::from(vec![7; size]);
        let measured = Measured::of(&bytes);
        self.shelf.put(key, bytes).await.unwrap();
        Part {
            filename: Some("../page.html".to_owned()),
            media_type: Some("text/html".to_owned()),
            ..Part::new(PartContent::Stored(Blob {
                key: key.to_owned(),
                size: measured.size,
                sha256: measured.sha256,
                upload: None,
            }))
        }
    }

    fn read(&self) -> usize {
        self.shelf.hooks.read.load(Ordering::SeqCst)
    }

    async fn fit(&self, task: &mut Task, budget: &mut ResponseBudget) {
        self.reader.fit(task, budget).await.unwrap();
    }
}

/// Whether a file differs from what its pointer says.
fn is_corrupt(shown: &Result<(), EngineError>) -> bool {
    let cause = shown.as_ref().err().and_then(|error| error.cause.as_ref());
    matches!(cause, Some(Cause::Store(StoreError::Corrupt(_))))
}

fn task(artifacts: Vec<Vec<Part>>) -> Task {
    let sample = SampleData::new(1, "give").unwrap();
    let id = TaskId::made_of(1);
    let mut task = sample.new_task(&sample.owner, id).unwrap().view(100, true);
    let artifacts = artifacts.into_iter().map(|parts| Artifact {
        chunks_of: None,
        id: "a".to_owned(),
        name: None,
        description: None,
        parts,
        extensions: Vec::new(),
        metadata: Metadata::new(),
    });
    task.artifacts = Some(artifacts.collect());
    task
}

fn parts(task: &Task) -> Vec<&PartContent> {
    let artifacts = task.artifacts.iter().flatten();
    artifacts
        .flat_map(|a| &a.parts)
        .map(|p| &p.content)
        .collect()
}

fn is_marked(task: &Task) -> bool {
    task.metadata.get(TRUNCATED) == Some(&Value::Bool(true))
}

#[tokio::test]
async fn file_that_fits_is_inlined_and_a_larger_one_becomes_a_url() {
    let desk = Desk::new(true, 100_000);
    let (small, large) = (desk.file("s", 40_000).await, desk.file("l", 90_000).await);
    let mut task = task(vec![vec![large, small]]);
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    let [PartContent::Url(url), PartContent::Raw(bytes)] = parts(&task)[..] else {
        panic!("{:?}", parts(&task));
    };
    assert_eq!(bytes.len(), 40_000);
    assert_eq!(
        url,
        "https://x/l?application/octet-stream&attachment; filename=\"page.html\""
    );
    assert_eq!(desk.read(), 40_000);
    assert!(!is_marked(&task), "nothing was left out");
}

#[tokio::test]
async fn files_of_a_response_are_read_sixteen_at_a_time() {
    let desk = Desk::new(true, 1_000_000);
    let mut tasks = Vec::new();
    for n in 0..4 {
        let mut files = Vec::new();
        for file in 0..5 {
            files.push(desk.file(&format!("k{n}.{file}"), 1_000).await);
        }
        tasks.push(task(vec![files]));
    }
    let mut room = desk.reader.response_budget(4);
    for task in &mut tasks {
        desk.reader.plan(task, &mut room).await.unwrap();
    }
    assert_eq!(desk.read(), 0, "planning reads no bytes");
    let fetched = desk.reader.fetch_planned(&mut tasks).await;
    assert!(fetched.iter().all(Result::is_ok), "{fetched:?}");
    let shown = tasks.iter().flat_map(parts);
    assert!(
        shown
            .into_iter()
            .all(|it| matches!(it, PartContent::Raw(_)))
    );
    assert_eq!(desk.read(), 20_000);
    assert_eq!(desk.shelf.hooks.most.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn damaged_file_does_not_affect_other_tasks_of_a_response() {
    let desk = Desk::new(true, 1_000_000);
    let (good, mut bad) = (desk.file("a", 10).await, desk.file("b", 10).await);
    if let PartContent::Stored(blob) = &mut bad.content {
        blob.sha256.replace_range(..1, "z");
    }
    let mut tasks = vec![task(vec![vec![bad]]), task(vec![vec![good]])];
    let fetched = desk.reader.fetch_planned(&mut tasks).await;
    assert!(is_corrupt(&fetched[0]) && fetched[1].is_ok(), "{fetched:?}");
}

#[tokio::test]
async fn large_file_is_left_out_and_marked_without_urls() {
    let desk = Desk::new(false, 50_000);
    let mut task = task(vec![vec![desk.file("l", 90_000).await]]);
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    let [PartContent::Url(name)] = parts(&task)[..] else {
        panic!("{:?}", parts(&task));
    };
    assert!(name.starts_with("urn:sha256:"), "{name}");
    assert!(is_marked(&task));
    assert_eq!(desk.read(), 0);
}

#[tokio::test]
async fn list_reads_no_more_bytes_than_one_response_holds() {
    let desk = Desk::new(true, 200_000);
    let mut room = desk.reader.response_budget(20);
    for n in 0..20 {
        let mut task = task(vec![vec![desk.file(&format!("k{n}"), 30_000).await]]);
        desk.fit(&mut task, &mut room).await;
    }
    assert!(desk.read() > 0);
    assert!(desk.read() * 4 / 3 < 200_000, "{} bytes", desk.read());
}

#[tokio::test]
async fn oversized_task_shows_its_newest_message_and_first_artifacts() {
    let desk = Desk::new(true, 40_000);
    let text = |n: usize| Part::text(format!("{n}{}", "x".repeat(9_000)));
    let mut task = task(vec![vec![text(1)], vec![text(2)]]);
    let said = |n: usize| Message::from_user(format!("m{n}"), vec![text(n)]);
    task.history = Some((1..=9).map(said).collect());
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    let kept: Vec<&str> = task
        .history
        .iter()
        .flatten()
        .map(|m| m.id.as_str())
        .collect();
    assert_eq!(kept, ["m9"]);
    assert_eq!(task.artifacts.map(|all| all.len()), Some(2));
    assert_eq!(task.metadata.get(TRUNCATED), Some(&Value::Bool(true)));
}

#[tokio::test]
async fn task_shows_its_state_even_if_nothing_else_fits() {
    let desk = Desk::new(true, 1);
    let mut task = task(vec![vec![desk.file("l", 90_000).await]]);
    task.metadata.insert("own".to_owned(), Value::from("x"));
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    assert_eq!(task.artifacts, Some(Vec::new()));
    assert!(is_marked(&task) && !task.metadata.contains_key("own"));
}

#[tokio::test]
async fn bytes_that_differ_from_the_pointer_are_not_shown() {
    let desk = Desk::new(true, 100_000);
    let mut part = desk.file("s", 10).await;
    let PartContent::Stored(blob) = &mut part.content else {
        panic!("not stored");
    };
    blob.sha256.replace_range(..1, "z");
    let mut task = task(vec![vec![part]]);
    let mut room = desk.reader.response_budget(1);
    let shown = desk.reader.fit(&mut task, &mut room).await;
    assert!(is_corrupt(&shown), "{shown:?}");
}

#[tokio::test]
async fn budget_of_a_page_reserves_the_state_of_each_task() {
    let desk = Desk::new(true, 1_000_000);
    let (one, many) = (
        desk.reader.response_budget(1).remaining,
        desk.reader.response_budget(100).remaining,
    );
    assert_eq!(one - many, 99 * BARE);
}

#[tokio::test]
async fn urls_use_budget_and_files_without_budget_show_a_digest() {
    let desk = Desk::new(true, 30_000);
    let mut files = Vec::new();
    for n in 0..10 {
        files.push(desk.file(&format!("k{n}"), 90_000).await);
    }
    let mut task = task(vec![files]);
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    let starts = |with: &str| {
        let shown = parts(&task).into_iter();
        let urls = shown.filter(|it| matches!(it, PartContent::Url(url) if url.starts_with(with)));
        urls.count()
    };
    let (links, names) = (starts("https://"), starts("urn:sha256:"));
    assert_eq!(links + names, 10);
    assert!((1..=7).contains(&links), "{links} links");
    assert!(is_marked(&task));
}

#[tokio::test]
async fn oversized_status_message_is_left_out_and_the_task_marked() {
    let desk = Desk::new(true, 50_000);
    let mut task = task(Vec::new());
    let long = vec![Part::text("x".repeat(60_000))];
    task.status.message = Some(Message::from_agent("m-1", long));
    desk.fit(&mut task, &mut desk.reader.response_budget(1))
        .await;
    assert_eq!(task.status.message, None);
    assert!(is_marked(&task));
}

#[tokio::test]
async fn oversized_part_of_an_event_becomes_a_digest_and_a_mark() {
    let desk = Desk::new(true, 50_000);
    let mut long = Part::text("x".repeat(60_000));
    long.metadata
        .insert("own".to_owned(), Value::from("y".repeat(60_000)));
    let mut status = task(Vec::new()).status;
    status.message = Some(Message::from_agent("m-1", vec![Part::text("short"), long]));
    let mut event = Event::Status(StatusUpdate {
        status,
        metadata: Metadata::new(),
    });
    desk.reader.fit_event(&mut event).await.unwrap();
    let Event::Status(update) = event else {
        panic!("{event:?}");
    };
    let marked = Metadata::from_iter([(TRUNCATED.to_owned(), Value::Bool(true))]);
    assert_eq!(update.metadata, marked);
    let message = update.status.message.unwrap();
    let [short, named] = &message.parts[..] else {
        panic!("{message:?}");
    };
    assert_eq!(*short, Part::text("short"));
    let digest = hex::encode(Sha256::digest("x".repeat(60_000)));
    let name = PartContent::Url(format!("urn:sha256:{digest}"));
    assert_eq!((&named.content, &named.metadata), (&name, &marked));
}
