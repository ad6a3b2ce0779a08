//! Keeps the traces of tasks: in the data folder, or in memory if there is none.
//!
//! A thread of its own keeps them, so that a trace never slows a turn. What it cannot take in
//! time, and what it cannot write, is not in the trace.

use crate::folder::{make_private, private_file};
use a2a_lambda::engine::{Clock as _, SystemClock};
use a2a_lambda::skill::{RecordTrace, TraceRow};
use a2a_lambda::task::{TaskId, Timestamp};
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
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The folder of the traces in the data folder.
pub(crate) const FOLDER: &str = "traces";
/// The most bytes of the trace of a task.
const TASK_MAX: usize = 1024 * 1024;
/// The last of them are for rows without content.
const RESERVE: usize = 128 * 1024;
/// The most bytes of all traces together.
const ALL_MAX: usize = 64 * 1024 * 1024;
/// The most rows that wait for the thread.
const QUEUE: usize = 256;

/// How long a reader waits for the rows before it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread does.
#[derive(Debug)]
enum Entry {
    Add(TaskId, TraceRow),
    Forget(TaskId),
    /// Reads the rows so far.
    Read(TaskId, oneshot::Sender<Vec<Map<String, Value>>>),
}

/// The traces of this program and those before it.
#[derive(Debug)]
pub struct Traces {
    queue: Sender<Entry>,
    /// The rows in the queue.
    waiting: Arc<AtomicUsize>,
    count: AtomicU64,
}

impl Traces {
    /// The traces in the data folder; in memory without one. Those without a change for `life`
    /// go. `prints`: the rows are printed as they end.
    pub(crate) fn open(data: Option<&Path>, life: Duration, prints: bool) -> Self {
        let began = SystemClock.now();
        let mut files = TraceFiles::open(data, began.minus(life)).unwrap_or_else(|error| {
            tracing::warn!("traces are kept in memory, since their folder fails: {error}");
            TraceFiles::default()
        });
        files.began = began.as_millis();
        let (queue, entries) = channel();
        let waiting = Arc::default();
        let count = Arc::clone(&waiting);
        thread::spawn(move || write(&entries, files, &count, prints));
        Self {
            queue,
            waiting,
            count: AtomicU64::new(0),
        }
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
    pub(crate) async fn of(&self, task: &TaskId) -> Vec<Map<String, Value>> {
        let (sender, receiver) = oneshot::channel();
        let _ended = self.queue.send(Entry::Read(task.clone(), sender));
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
        let known = rows.entry(id.to_owned()).or_default();
        for (name, value) in row {
            match (known.get_mut(&name), value) {
                (Some(Value::Object(content)), Value::Object(more)) => content.extend(more),
                (_, value) => drop(known.insert(name, value)),
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

    fn record(&self, task: &TaskId, row: TraceRow) {
        self.count.fetch_add(1, Ordering::Relaxed);
        // A full queue drops the row: the turn does not wait.
        if self.waiting.fetch_add(1, Ordering::Relaxed) < QUEUE {
            let _ended = self.queue.send(Entry::Add(task.clone(), row));
        } else {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn forget(&self, task: &TaskId) {
        // This must not be dropped.
        let _ended = self.queue.send(Entry::Forget(task.clone()));
    }
}

fn write(entries: &Receiver<Entry>, mut files: TraceFiles, waiting: &AtomicUsize, prints: bool) {
    for entry in entries {
        let (task, row) = match entry {
            Entry::Add(task, row) => {
                waiting.fetch_sub(1, Ordering::Relaxed);
                (task, row)
            }
            Entry::Forget(task) => {
                files.forget(name_of(&task));
                continue;
            }
            Entry::Read(task, sender) => {
                let text = files.read(&name_of(&task));
                let _gone = sender.send(rows(&text, files.began));
                continue;
            }
        };
        // The step around a call of a model says nothing more than the call.
        let is_around = row.kind == "model"
            && !["stop", "error", "kept"]
                .iter()
                .any(|fact| row.facts.contains_key(*fact));
        if prints && row.end.is_some() && !is_around {
            // A closed standard output is no reason to stop.
            let _closed = io::stdout().write_all(line_of(&task, &row).as_bytes());
        }
        if let Err(error) = files.add(&name_of(&task), row) {
            tracing::debug!("failed to write a trace: {error}");
        }
    }
}

/// A row as a line for people.
fn line_of(task: &TaskId, row: &TraceRow) -> String {
    let short: String = task.as_str().chars().skip(5).take(8).collect();
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

/// The name of the file of a task. A client may have made its id.
fn name_of(task: &TaskId) -> String {
    let mut name = hex::encode(Sha256::digest(task.as_str()));
    name.truncate(32);
    name + ".jsonl"
}

/// What is kept, by the name of the file.
#[derive(Debug, Default)]
struct TraceFiles {
    /// When this program began, in milliseconds since 1970.
    began: i64,
    /// `None` if all is in memory.
    folder: Option<PathBuf>,
    traces: BTreeMap<String, TaskTrace>,
    bytes: usize,
    /// The names of deleted ones. A turn of theirs may still run.
    deletions: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct TaskTrace {
    /// When it last changed, in milliseconds since 1970.
    changed_ms: i64,
    bytes: usize,
    /// The rows, if all is in memory.
    text: Vec<u8>,
}

impl TraceFiles {
    fn open(data: Option<&Path>, oldest: Timestamp) -> io::Result<Self> {
        let Some(folder) = data.map(|data| data.join(FOLDER)) else {
            return Ok(Self::default());
        };
        make_private(&folder)?;
        let mut files = Self::default();
        for entry in fs::read_dir(&folder)? {
            let (entry, name) = entry.map(|entry| (entry.metadata(), entry.file_name()))?;
            let entry = entry?;
            let age = entry.modified()?.duration_since(std::time::UNIX_EPOCH);
            let age = age.unwrap_or_default().as_millis();
            let bytes = usize::try_from(entry.len()).unwrap_or(ALL_MAX);
            let trace = TaskTrace {
                changed_ms: i64::try_from(age).unwrap_or(i64::MAX),
                bytes,
                text: Vec::new(),
            };
            files.bytes += bytes;
            files.traces.insert(name.to_string_lossy().into(), trace);
        }
        files.folder = Some(folder);
        let traces = files.traces.iter();
        let old = traces.filter(|(_, trace)| trace.changed_ms < oldest.as_millis());
        let old: Vec<String> = old.map(|(name, _)| name.clone()).collect();
        old.iter().for_each(|name| files.remove(name));
        Ok(files)
    }

    fn add(&mut self, name: &str, mut row: TraceRow) -> io::Result<()> {
        // A client may give the id to a new task.
        if row.is_first() {
            self.deletions.remove(name);
        }
        if self.deletions.contains(name) {
            return Ok(());
        }
        let bytes = self.traces.get(name).map_or(0, |trace| trace.bytes);
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
        while self.bytes + line.len() > ALL_MAX && self.remove_oldest(name) {}
        match &self.folder {
            Some(folder) => {
                let mut file = private_file(&folder.join(name))?;
                file.seek(SeekFrom::End(0))?;
                file.write_all(&line)?;
            }
            None => self.trace(name).text.extend_from_slice(&line),
        }
        self.bytes += line.len();
        let trace = self.trace(name);
        trace.bytes += line.len();
        trace.changed_ms = SystemClock.now().as_millis();
        Ok(())
    }

    fn trace(&mut self, name: &str) -> &mut TaskTrace {
        self.traces.entry(name.to_owned()).or_default()
    }

    /// Removes the trace that changed first, but not `name`; `false` if there is none.
    fn remove_oldest(&mut self, name: &str) -> bool {
        let others = self.traces.iter().filter(|(other, _)| *other != name);
        let oldest = others.min_by_key(|(_, trace)| trace.changed_ms);
        let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
            return false;
        };
        self.remove(&oldest);
        true
    }

    fn forget(&mut self, name: String) {
        self.remove(&name);
        self.deletions.insert(name);
    }

    fn remove(&mut self, name: &str) {
        if let Some(trace) = self.traces.remove(name) {
            self.bytes = self.bytes.saturating_sub(trace.bytes);
        }
        if let Some(folder) = &self.folder
            && let Err(error) = fs::remove_file(folder.join(name))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("failed to remove a trace: {error}");
        }
    }

    fn read(&self, name: &str) -> Vec<u8> {
        match &self.folder {
            Some(folder) => fs::read(folder.join(name)).unwrap_or_default(),
            None => self
                .traces
                .get(name)
                .map_or_else(Vec::new, |it| it.text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL_MAX, TASK_MAX, TraceFiles, Traces, line_of, name_of};
    use a2a_lambda::skill::{RecordTrace as _, TraceRow};
    use a2a_lambda::task::TaskId;
    use std::time::Duration;

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
        let mut files = TraceFiles::default();
        for id in 0..2_000 {
            files.add("one", row(id, 100_000)).unwrap();
        }
        assert!(files.bytes <= TASK_MAX, "{}", files.bytes);
        let text = String::from_utf8(files.read("one")).unwrap();
        assert!(text.lines().count() > 500, "{}", text.lines().count());
        assert!(text.lines().last().unwrap().contains(r#""cut":"task""#));
    }

    #[test]
    fn the_oldest_task_goes_first_when_all_traces_are_too_long() {
        let mut files = TraceFiles::default();
        for task in 0..80 {
            for id in 0..10 {
                files.add(&format!("{task:02}"), row(id, 95_000)).unwrap();
            }
            files.trace(&format!("{task:02}")).changed_ms = task;
        }
        assert!(files.bytes <= ALL_MAX, "{}", files.bytes);
        assert!(files.bytes > ALL_MAX - TASK_MAX, "{}", files.bytes);
        let sum: usize = files.traces.values().map(|trace| trace.bytes).sum();
        assert_eq!(sum, files.bytes);
        assert!(!files.traces.contains_key("00") && files.traces.contains_key("79"));
    }

    #[test]
    fn a_long_value_is_cut_where_it_is_recorded() {
        let row = row(1, 30_000_000);
        assert_eq!(row.facts["cut"], "output");
        assert!(serde_json::to_string(&row).unwrap().len() < 10_000);
    }

    #[tokio::test]
    async fn a_forgotten_task_has_no_trace() {
        let traces = Traces::open(None, Duration::MAX, false);
        let task = TaskId::parse("one").unwrap();
        traces.record(&task, row(1, 1));
        traces.forget(&task);
        // The turn of the deleted task has not noticed it.
        traces.record(&task, row(2, 1));
        assert!(traces.of(&task).await.is_empty());
        let mut turn = TraceRow {
            kind: "turn",
            end: None,
            ..row(3, 1)
        };
        turn.fact("turn", 1);
        turn.fact("attempt", 1);
        traces.record(&task, turn);
        traces.record(&task, row(4, 1));
        assert_eq!(traces.of(&task).await.len(), 2);
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
        assert_eq!(
            rows[1]["content"],
            serde_json::json!({"input": 1, "output": 2})
        );
    }

    #[test]
    fn a_line_for_people_has_no_control_characters() {
        let task = TaskId::parse("task-0123456789abcdef").unwrap();
        let mut hostile = row(1, 1);
        "\u{1b}[31mred\n".clone_into(&mut hostile.name);
        let line = line_of(&task, &hostile);
        assert!(line.starts_with("trace 01234567  step"), "{line}");
        assert_eq!(line.matches(char::is_control).count(), 1, "{line}");
        assert_ne!(name_of(&task), name_of(&TaskId::parse("other").unwrap()));
    }
}
