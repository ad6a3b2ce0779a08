//! Keeps the traces of tasks: a file each, below the folder with the data.
//!
//! A thread of its own keeps them, so that a trace never slows a turn. What it cannot take in
//! time, and what it cannot write, is not in the trace.

use crate::folder::{make_private, private_file};
use crate::otlp::Spans;
use crate::process::RunError;
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::skill::{RecordTrace, TraceRow};
use a2a_lambda::task::{TaskKey, Timestamp, WriteId};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Their folder in the folder with the data.
pub(crate) const FOLDER: &str = "traces";
/// The most bytes of the trace of a task.
const TASK_MAX: usize = 1024 * 1024;
/// The last of them are for rows without content.
const RESERVE: usize = 128 * 1024;
/// The most bytes of all traces together.
const ALL_MAX: usize = 64 * 1024 * 1024;
/// What is free after the oldest traces have gone: they are not looked for at each row.
const SPACE: usize = 4 * 1024 * 1024;
/// The most rows that wait for the thread.
const QUEUE: usize = 256;

/// How long a reader waits for the rows before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whose trace it is: the task and its incarnation.
pub(crate) type TraceKey = (TaskKey, WriteId);

/// What the thread does.
#[derive(Debug)]
enum Entry {
    Add(TraceKey, TraceRow),
    Forget(TraceKey),
    /// Reads the rows so far.
    Read(TraceKey, oneshot::Sender<Vec<Map<String, Value>>>),
}

/// The traces of this program and those before it.
#[derive(Debug)]
pub struct Traces {
    queue: Sender<Entry>,
    /// The rows in the queue.
    waiting: Arc<AtomicUsize>,
    count: AtomicU64,
    /// The rows are spans too.
    pub(crate) spans: Option<Spans>,
    /// The number of the build under `dev`, which turns name; 0 without it.
    pub(crate) build: u32,
}

impl Traces {
    /// The traces below `folder`; without one nothing is kept. Those without a change for `life`
    /// go. `is_printing`: the rows are printed as they end.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub(crate) fn open(
        folder: Option<&Path>,
        life: Duration,
        is_printing: bool,
    ) -> Result<Self, RunError> {
        let (queue, entries) = channel();
        let waiting = Arc::default();
        if let Some(folder) = folder {
            let (began, count) = (SystemClock.now(), Arc::clone(&waiting));
            let files = TraceFiles::open(folder.join(FOLDER), began.minus(life));
            let files =
                files.map_err(|error| format!("failed to use the folder of traces: {error}"))?;
            thread::spawn(move || write(&entries, files, began.as_millis(), &count, is_printing));
        }
        Ok(Self {
            queue,
            waiting,
            count: AtomicU64::new(0),
            spans: None,
            build: 0,
        })
    }

    /// How many rows there were, and writes of the table. It grows with each of any task.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The table has so many more writes, perhaps of other processes.
    pub(crate) fn add_writes(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    /// The rows of a task, in the order in which they began. A row of an earlier program that
    /// has not ended is `lost`.
    pub(crate) async fn of(&self, key: TraceKey) -> Vec<Map<String, Value>> {
        let (sender, receiver) = oneshot::channel();
        let _ended = self.queue.send(Entry::Read(key, sender));
        match timeout(PATIENCE, receiver).await {
            Ok(Ok(rows)) => rows,
            _ => Vec::new(),
        }
    }
}

/// The rows of a file. `began`: when this program did, in milliseconds since 1970.
fn rows(text: &[u8], began: i64) -> Vec<Map<String, Value>> {
    let mut rows: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    // A line that a killed program has not finished is no row.
    let lines = text.split(|byte| *byte == b'\n');
    for row in lines.filter_map(|line| serde_json::from_slice::<Map<String, Value>>(line).ok()) {
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
        let merged_row = rows.entry(id.to_owned()).or_default();
        for (name, value) in row {
            match (merged_row.get_mut(&name), value) {
                (Some(Value::Object(content)), Value::Object(more)) => content.extend(more),
                (_, value) => drop(merged_row.insert(name, value)),
            }
        }
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    let start = |row: &Map<String, Value>| row.get("start").and_then(Value::as_i64);
    for row in &mut rows {
        if !row.contains_key("end") && start(row).is_some_and(|start| start < began) {
            row.insert("lost".to_owned(), true.into());
        }
    }
    rows.sort_by_key(start);
    rows
}

impl RecordTrace for Traces {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn record(&self, task: &TaskKey, incarnation: &WriteId, mut row: TraceRow) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let key = (task.clone(), incarnation.clone());
        if let Some(spans) = &self.spans {
            spans.record(&key, &row);
        }
        if row.kind == "turn" && self.build > 0 {
            row.fact("build", self.build);
        }
        // A full queue drops the row: the turn does not wait.
        if self.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            let _ended = self.queue.send(Entry::Add(key, row));
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn forget(&self, task: &TaskKey, incarnation: &WriteId) {
        // This must not be dropped.
        let key = (task.clone(), incarnation.clone());
        let _ended = self.queue.send(Entry::Forget(key));
    }
}

fn write(
    entries: &Receiver<Entry>,
    mut files: TraceFiles,
    began: i64,
    waiting: &AtomicUsize,
    is_printing: bool,
) {
    let mut errors = BTreeMap::new();
    for entry in entries {
        let (key, row) = match entry {
            Entry::Add(key, row) => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                (key, row)
            }
            Entry::Forget(key) => {
                files.remove(&files.path_of(&key));
                continue;
            }
            Entry::Read(key, sender) => {
                let text = fs::read(files.path_of(&key)).unwrap_or_default();
                let _gone = sender.send(rows(&text, began));
                continue;
            }
        };
        if is_printing && is_printed(&row, &mut errors) {
            // A closed standard output is no reason to stop.
            let _closed = io::stdout().write_all(line_of(&key.0, &row).as_bytes());
        }
        if let Err(error) = files.add(&key, row) {
            tracing::debug!("failed to write a trace: {error}");
        }
    }
}

/// Whether a row is printed: it has ended, and is no step that only repeats the call of a model in
/// it. `errors` has the errors of calls, by the ids of the rows around them.
fn is_printed(row: &TraceRow, errors: &mut BTreeMap<String, Value>) -> bool {
    let (error, of_call) = (row.facts.get("error"), errors.remove(&row.id));
    if row.end.is_none() || row.kind != "model" {
        return row.end.is_some();
    }
    let facts = ["stop", "error", "kept", "dropped"];
    let is_new = of_call.is_none() || of_call.as_ref() != error;
    let is_printed = is_new && facts.iter().any(|fact| row.facts.contains_key(*fact));
    if let (true, Some(parent), Some(error)) = (is_printed, &row.parent, error) {
        errors.insert(parent.clone(), error.clone());
    }
    is_printed
}

/// A row as a line for people.
fn line_of(task: &TaskKey, row: &TraceRow) -> String {
    // An id of a client is behind its subject.
    let id = task.local().split('~').next_back().unwrap_or_default();
    let short: String = id.chars().skip(5).take(8).collect();
    let took = row.end.unwrap_or(row.start).saturating_sub(row.start);
    let mut line = format!("trace {short}  {:8} {:40} {took:6} ms", row.kind, row.name);
    for (name, value) in &row.facts {
        if !value.is_null() {
            line.push_str(&format!("  {name}={value}"));
        }
    }
    // A name can have any character, and a terminal obeys some.
    line.retain(|char| !char.is_control());
    line + "\n"
}

/// The files of the traces.
#[derive(Debug)]
struct TraceFiles {
    folder: PathBuf,
    /// The bytes of all of them.
    bytes: usize,
}

impl TraceFiles {
    /// Those in a folder, without those that have not changed since `oldest`.
    fn open(folder: PathBuf, oldest: Timestamp) -> io::Result<Self> {
        make_private(&folder)?;
        let mut files = Self { folder, bytes: 0 };
        for (time, path) in files.by_age()? {
            files.bytes += size_of(&path);
            let age = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            if i64::try_from(age.as_millis()).is_ok_and(|age| age < oldest.as_millis()) {
                files.remove(&path);
            }
        }
        Ok(files)
    }

    /// All of them, each with the time of its last change: the oldest first.
    fn by_age(&self) -> io::Result<BTreeSet<(SystemTime, PathBuf)>> {
        let entries = fs::read_dir(&self.folder)?.map(|entry| {
            let entry = entry?;
            Ok((entry.metadata()?.modified()?, entry.path()))
        });
        entries.collect()
    }

    /// The file of a task. A client may have made its id.
    fn path_of(&self, (task, incarnation): &TraceKey) -> PathBuf {
        let name = format!("{}/{incarnation}", task.folder());
        let mut name = hex::encode(Sha256::digest(name));
        name.truncate(32);
        self.folder.join(name + ".jsonl")
    }

    fn add(&mut self, key: &TraceKey, mut row: TraceRow) -> io::Result<()> {
        let path = self.path_of(key);
        // A turn of a deleted task may still run.
        if !path.exists() && !row.begins_trace() {
            return Ok(());
        }
        let bytes = size_of(&path);
        let mut line = serde_json::to_vec(&row)?;
        if bytes + line.len() > TASK_MAX - RESERVE && !row.content.is_empty() {
            row.content.clear();
            row.fact("cut", "task");
            line = serde_json::to_vec(&row)?;
        }
        // The first byte ends the line that a killed program has begun.
        line.insert(0, b'\n');
        if bytes + line.len() > TASK_MAX {
            return Ok(());
        }
        if self.bytes + line.len() > ALL_MAX {
            let others = self.by_age()?.into_iter().map(|(_, other)| other);
            for other in others.filter(|other| *other != path) {
                if self.bytes <= ALL_MAX - SPACE {
                    break;
                }
                self.remove(&other);
            }
        }
        let mut file = private_file(&path)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(&line)?;
        self.bytes += line.len();
        Ok(())
    }

    fn remove(&mut self, path: &Path) {
        self.bytes = self.bytes.saturating_sub(size_of(path));
        if let Err(error) = fs::remove_file(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("failed to remove a trace: {error}");
        }
    }
}

/// The bytes of a file; 0 if there is none.
fn size_of(path: &Path) -> usize {
    let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    usize::try_from(bytes).unwrap_or(ALL_MAX)
}

#[cfg(test)]
mod tests {
    use super::{
        ALL_MAX, FOLDER, SPACE, TASK_MAX, TraceFiles, Traces, is_printed, line_of, size_of,
    };
    use a2a_lambda::skill::{RecordTrace as _, TraceRow};
    use a2a_lambda::task::{Owner, Subject, TaskId, TaskKey, TenantId, Timestamp, WriteId};
    use a2a_lambda_rows::each_row;
    use serde_json::json;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;
    use std::time::Duration;

    /// An empty folder.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("a2a-traces-{name}-{}", std::process::id()));
        let _absent = fs::remove_dir_all(&folder);
        folder
    }

    fn task_of(tenant: &str, id: &str) -> TaskKey {
        let owner = Owner {
            tenant: TenantId::parse(tenant).unwrap(),
            subject: Subject::parse("ann").unwrap(),
        };
        TaskKey::new(&owner, &TaskId::parse(id).unwrap())
    }

    fn task(id: &str) -> TaskKey {
        task_of("acme", id)
    }

    fn first() -> WriteId {
        WriteId::made_of(1)
    }

    /// The row with which a turn begins.
    fn turn() -> TraceRow {
        TraceRow {
            kind: "turn",
            ..TraceRow::default()
        }
    }

    fn row(id: usize, bytes: usize) -> TraceRow {
        let mut row = TraceRow {
            id: id.to_string(),
            kind: "step",
            end: Some(2),
            ..TraceRow::default()
        };
        row.add("output", &"x".repeat(bytes));
        row
    }

    #[test]
    fn a_full_trace_keeps_its_rows_without_content_and_then_nothing() {
        let folder = folder("full");
        let mut files = TraceFiles::open(folder.clone(), Timestamp::default()).unwrap();
        let one = (task("one"), first());
        files.add(&one, turn()).unwrap();
        for id in 0..2_000 {
            files.add(&one, row(id, 100_000)).unwrap();
        }
        assert!(files.bytes <= TASK_MAX, "{}", files.bytes);
        let text = fs::read_to_string(files.path_of(&one)).unwrap();
        assert!(text.lines().count() > 500, "{}", text.lines().count());
        assert!(text.lines().last().unwrap().contains(r#""cut":"task""#));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_oldest_tasks_go_first_when_all_traces_are_too_long() {
        let folder = folder("all");
        let mut files = TraceFiles::open(folder.clone(), Timestamp::default()).unwrap();
        let name = |number: u64| (task(&format!("task-{number}")), first());
        for number in 0..85 {
            files.add(&name(number), turn()).unwrap();
            for id in 0..10 {
                files.add(&name(number), row(id, 95_000)).unwrap();
            }
            // The clock of a file system may stand still.
            let path = files.path_of(&name(number));
            let file = fs::File::options().write(true).open(path).unwrap();
            let time = std::time::UNIX_EPOCH + Duration::from_secs(number);
            file.set_modified(time).unwrap();
        }
        assert!(files.bytes <= ALL_MAX, "{}", files.bytes);
        assert!(files.bytes > ALL_MAX - SPACE - TASK_MAX, "{}", files.bytes);
        let paths = files.by_age().unwrap();
        let sum: usize = paths.iter().map(|(_, path)| size_of(path)).sum();
        assert_eq!(sum, files.bytes);
        assert!(!files.path_of(&name(0)).exists() && files.path_of(&name(84)).exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_long_value_is_cut_where_it_is_recorded() {
        let row = row(1, 30_000_000);
        assert_eq!(row.facts["cut"], "output");
        assert!(serde_json::to_string(&row).unwrap().len() < 10_000);
    }

    #[tokio::test]
    async fn a_forgotten_task_has_no_trace_also_after_a_restart() {
        let folder = folder("forgotten");
        let one = task("one");
        let open = || Traces::open(Some(folder.as_path()), Duration::from_secs(60), false).unwrap();
        let traces = open();
        traces.record(&one, &first(), turn());
        traces.record(&one, &first(), row(1, 1));
        assert_eq!(traces.of((one.clone(), first())).await.len(), 2);
        traces.forget(&one, &first());
        // The turn of the deleted task has not noticed it, and neither has a webhook.
        traces.record(&one, &first(), row(2, 1));
        assert!(traces.of((one.clone(), first())).await.is_empty());
        let traces = open();
        traces.record(&one, &first(), row(2, 1));
        assert!(traces.of((one.clone(), first())).await.is_empty());
        // A client may give the id to a new task.
        traces.record(&one, &first(), turn());
        traces.record(&one, &first(), row(4, 1));
        assert_eq!(traces.of((one.clone(), first())).await.len(), 2);
        assert_eq!(fs::read_dir(folder.join(FOLDER)).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn a_trace_is_read_and_removed_by_its_owner_and_incarnation_only() {
        let folder = folder("owners");
        let traces = Traces::open(Some(folder.as_path()), Duration::from_secs(60), false).unwrap();
        let (mine, other) = (task("my-task-1"), task_of("evil", "my-task-1"));
        traces.record(&mine, &first(), turn());
        for (task, incarnation) in [(&other, first()), (&mine, WriteId::made_of(2))] {
            assert!(
                traces
                    .of((task.clone(), incarnation.clone()))
                    .await
                    .is_empty()
            );
            traces.forget(task, &incarnation);
        }
        assert_eq!(traces.of((mine, first())).await.len(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn content_that_a_row_began_with_is_there_after_its_end() {
        let text = br#"{"id":"a","start":9,"content":{"input":1}}
{"id":"b","start":2}
{"id":"a","start":9,"end":12,"content":{"output":2}}
{"id":"c","st"#;
        let rows = super::rows(text, 5);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (&rows[0]["id"], &rows[0]["lost"]),
            (&"b".into(), &true.into())
        );
        assert_eq!(rows[1]["content"], json!({"input": 1, "output": 2}));
    }

    #[test]
    fn a_call_of_a_model_is_one_line_also_if_it_fails() {
        let model = |name: &str, id: usize, parent: &str, fact: (&str, &str)| {
            let mut row = row(id, 1);
            (row.kind, row.name) = ("model", name.to_owned());
            row.parent = Some(parent.to_owned());
            row.fact(fact.0, fact.1);
            row
        };
        let (stop, none) = (("stop", "end"), ("none", ""));
        let (busy, time) = (("error", "MODEL_BUSY"), ("error", "TIME"));
        // What the call says and what its step says: which of them are printed?
        let rows = [
            (stop, none, [true, false]),
            (busy, busy, [true, false]),
            // The step has an error that the call has not.
            (stop, time, [true, true]),
            (busy, time, [true, true]),
            (busy, ("dropped", "true"), [true, true]),
        ];
        each_row(rows, |(call, step, expected)| {
            let mut errors = BTreeMap::new();
            let mut is_printed = |row| is_printed(&row, &mut errors);
            // Another call that runs beside it changes nothing.
            assert!(is_printed(model("other", 4, "3", busy)));
            let lines = [
                is_printed(model("call", 2, "1", call)),
                is_printed(model("step", 1, "turn", step)),
            ];
            assert_eq!(lines, expected);
            assert!(!is_printed(model("other step", 3, "turn", busy)));
        });
        // A turn whose own call failed is printed, with the same error.
        let mut errors = BTreeMap::new();
        assert!(is_printed(&model("call", 2, "1", busy), &mut errors));
        let mut turn = model("turn", 1, "", busy);
        turn.kind = "turn";
        assert!(is_printed(&turn, &mut errors));
        // A later run has the reply, and makes no call.
        let mut errors = BTreeMap::new();
        assert!(super::is_printed(
            &model("kept", 1, "turn", ("kept", "true")),
            &mut errors
        ));
        let mut begun = row(1, 1);
        begun.end = None;
        assert!(!super::is_printed(&begun, &mut errors));
    }

    #[test]
    fn a_line_for_people_has_no_control_characters() {
        let mut hostile = row(1, 1);
        "\u{1b}[31mred\n".clone_into(&mut hostile.name);
        let line = line_of(&task("task-0123456789abcdef"), &hostile);
        assert!(line.starts_with("trace 01234567  step"), "{line}");
        assert_eq!(line.matches(char::is_control).count(), 1, "{line}");
    }
}
