//! What has to be true: every commit, answer and frame passes here.

use crate::fleet;
use crate::skills::{SCRIPT, SLOW, digest_of};
use a2a_lambda::store::queue::TaskImage;
use a2a_lambda::store::{TaskWrite, ThreadWrite};
use a2a_lambda::task::{
    Event, EventId, LoggedEvent, Message, PartContent, Refusal, Role, Task, TaskId, TaskRecord,
    TaskState,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What became of one task.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) record: TaskRecord,
    writes: BTreeSet<String>,
    /// Every event ever stored; a record may forget.
    log: Vec<LoggedEvent>,
    states: BTreeSet<TaskState>,
    turn: u32,
    /// Whether a worker was ever asked for in this turn.
    pub(crate) dispatched: bool,
    pub(crate) acknowledged: bool,
}

/// One run of a skill.
#[derive(Debug, Default)]
struct Run {
    makes: BTreeSet<&'static str>,
    keeps: BTreeSet<String>,
}

/// A message somebody sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// No answer was heard.
    Unheard,
    /// It was taken.
    Taken,
    /// It was refused.
    Refused,
}

/// Where a reader stands.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    pub(crate) task: TaskId,
    pub(crate) last: Option<EventId>,
    pub(crate) seq: u64,
    pub(crate) ended: bool,
}

/// The memory of a history.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) violations: Vec<String>,
    pub(crate) tasks: BTreeMap<TaskId, Seen>,
    threads: BTreeMap<String, (u64, BTreeSet<String>)>,
    runs: BTreeMap<u64, Run>,
    last_run: u64,
    effects: u64,
    results: BTreeMap<(TaskId, u32, u32), u64>,
    starts: BTreeMap<(TaskId, u32), u32>,
    pub(crate) said: BTreeMap<String, Said>,
    /// What a keyed message was answered with: its task, or the id of a reply.
    answers: BTreeMap<String, String>,
    pub(crate) positions: Vec<Position>,
    pub(crate) trace: Option<Vec<String>>,
    /// Whether processes of two releases run.
    pub(crate) mixed: bool,
    /// What the release to come has added, by conversation.
    added: BTreeMap<String, Option<Value>>,
}

impl Oracle {
    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    pub(crate) fn broken(&mut self, text: String) {
        self.note(|| format!("VIOLATION {text}"));
        self.violations.push(text);
    }

    /// Whether this commit is stored already.
    pub(crate) fn knows(&self, write: &TaskWrite) -> bool {
        let Some(id) = write.id() else { return false };
        let seen = self.tasks.get(write.record.id());
        seen.is_some_and(|seen| seen.writes.contains(id.as_str()))
    }

    /// A commit has been stored.
    pub(crate) fn committed(&mut self, write: &TaskWrite) {
        let record = &write.record;
        let image = TaskImage::of(record);
        self.note(|| {
            format!(
                "commit {} v{} e{} {} turn {} dispatch {:?} events {}",
                record.id(),
                record.version(),
                record.epoch(),
                record.state(),
                image.turn,
                image.dispatch,
                record.events_after(0).count(),
            )
        });
        let mut faults = Vec::new();
        self.check_added(write, &mut faults);
        self.check_thread(write, &mut faults);
        if record.state() == TaskState::Completed && !record.is_hidden() {
            self.check_artifacts(write, &mut faults);
        }
        let before = self.tasks.remove(record.id());
        let mut seen = before.unwrap_or_else(|| Seen {
            record: record.clone(),
            writes: BTreeSet::new(),
            log: Vec::new(),
            states: BTreeSet::new(),
            turn: 0,
            dispatched: false,
            acknowledged: false,
        });
        seen.follows(record, &mut faults);
        let events: Vec<_> = record
            .events_after(seen.log.len() as u64)
            .cloned()
            .collect();
        seen.log.extend(events);
        seen.dispatched &= seen.turn == image.turn;
        seen.turn = image.turn;
        seen.dispatched |= image.dispatch == Some(image.version);
        seen.states.insert(record.state());
        seen.writes
            .extend(write.id().map(|id| id.as_str().to_owned()));
        seen.record = record.clone();
        self.tasks.insert(record.id().clone(), seen);
        for fault in faults {
            self.broken(fault);
        }
    }

    /// A thread was written apart from a task: its values stay, unless it says
    /// that they have expired.
    pub(crate) fn thread_kept(&mut self, write: &ThreadWrite) {
        let record = &write.record;
        let entry = self.threads.entry(record.context_id.to_string());
        let (version, keys) = entry.or_default();
        if record.version <= *version {
            return; // The same write again.
        }
        let skipped = record.version != *version + 1;
        *version = record.version;
        if record.state_version == 0 {
            keys.clear();
        }
        if self.mixed
            && let Some(fault) = self.check_added_to(write)
        {
            self.broken(fault);
        }
        if skipped {
            self.broken(format!(
                "G3: a write of thread {} is lost",
                record.context_id
            ));
        }
    }

    /// What a later release has added to a task is neither lost nor changed by
    /// the others.
    fn check_added(&mut self, write: &TaskWrite, faults: &mut Vec<String>) {
        if !self.mixed {
            return;
        }
        let record = &write.record;
        let seen = self.tasks.get(record.id());
        let before = seen.and_then(|seen| fleet::added_to_task(&seen.record));
        let now = fleet::added_to_task(record);
        if !fleet::follows(before.as_ref(), now.as_ref(), write.id()) {
            faults.push(format!(
                "G17: what a later release has added to task {} was {before:?} and is {now:?}",
                record.id()
            ));
        }
        if let Some(thread) = &write.thread {
            faults.extend(self.check_added_to(thread));
        }
    }

    /// The same of a conversation.
    fn check_added_to(&mut self, write: &ThreadWrite) -> Option<String> {
        let record = &write.record;
        let context = record.context_id.to_string();
        let now = fleet::added_to_thread(record);
        let before = self.added.insert(context, now.clone()).flatten();
        let same = fleet::follows(before.as_ref(), now.as_ref(), Some(&write.write));
        (!same).then(|| {
            let id = &record.context_id;
            format!(
                "G17: what a later release has added to thread {id} was {before:?} and is {now:?}"
            )
        })
    }

    /// Keys of a conversation are added, never lost.
    fn check_thread(&mut self, write: &TaskWrite, faults: &mut Vec<String>) {
        let Some(thread) = &write.thread else { return };
        let context = thread.record.context_id.to_string();
        let (version, keys) = self.threads.entry(context.clone()).or_default();
        let session = &thread.record.state.session;
        let lost = keys.iter().any(|key| !session.contains_key(key));
        let expired = thread
            .record
            .updated_at
            .since(thread.record.created_at)
            .as_secs()
            > 3000;
        if thread.record.version != *version + 1 || (lost && !expired) {
            faults.push(format!("G3: a write of thread {context} is lost"));
        }
        *version = thread.record.version;
        *keys = session.keys().cloned().collect();
    }

    /// A completed task holds what its last run made, whole.
    fn check_artifacts(&self, write: &TaskWrite, faults: &mut Vec<String>) {
        let view = write.record.view(0, true);
        let artifacts = view.artifacts.unwrap_or_default();
        let named = |name: &str| artifacts.iter().find(|it| it.name.as_deref() == Some(name));
        let output = named(SCRIPT).or_else(|| named(SLOW));
        let run = output.and_then(|it| match it.parts.first().map(|part| &part.content) {
            Some(PartContent::Data(data)) => data.get("run").and_then(serde_json::Value::as_u64),
            _ => None,
        });
        let id = write.record.id();
        let Some((number, run)) = run.and_then(|n| Some((n, self.runs.get(&n)?))) else {
            faults.push(format!("G6: completed task {id} holds no output"));
            return;
        };
        for name in ["report", "kept"] {
            let texts: Vec<&str> = named(name)
                .iter()
                .flat_map(|it| it.parts.iter())
                .filter_map(|part| match &part.content {
                    PartContent::Text(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            let maker = texts.first().and_then(|text| text.split_once(':'));
            let Some((maker, _)) = maker else {
                if run.makes.contains(name) {
                    faults.push(format!("G6: {name} of task {id} is missing"));
                }
                continue;
            };
            let chunks: &[&str] = if name == "report" {
                &["0", "1", "end"]
            } else {
                &["0", "end"]
            };
            let whole: Vec<String> = chunks.iter().map(|n| format!("{maker}:{n}")).collect();
            let mine = !run.makes.contains(name) || maker == number.to_string();
            if texts != whole || !mine {
                faults.push(format!(
                    "G6: run {number} of task {id} leaves {name} as {texts:?}"
                ));
            }
        }
        let blob = named("blob").and_then(|it| it.parts.first());
        let whole = blob.is_some_and(|part| match &part.content {
            PartContent::Stored(blob) => blob.sha256 == digest_of(number),
            _ => false,
        });
        if run.makes.contains("blob") && !whole {
            faults.push(format!("G6: the blob of task {id} is not of run {number}"));
        }
        let session = write.thread.as_ref().map(|it| &it.record.state.session);
        let kept = |key: &String| session.is_some_and(|session| session.contains_key(key));
        if !run.keeps.iter().all(kept) {
            faults.push(format!("task {id} completed without its session values"));
        }
    }

    pub(crate) fn run_begins(&mut self, task: &TaskId, turn: u32, program: &str) -> u64 {
        self.last_run += 1;
        self.runs.insert(self.last_run, Run::default());
        let starts = self.starts.entry((task.clone(), turn)).or_default();
        *starts += 1;
        let (starts, run) = (*starts, self.last_run);
        self.note(|| format!("run {run} of {task} turn {turn}: {program}"));
        // Without a step or a saved value nothing sets the attempts back.
        if starts > crate::clients::ATTEMPTS && !program.contains(['S', 'D', 'G']) {
            self.broken(format!(
                "G14: turn {turn} of task {task} ran {starts} times"
            ));
        }
        self.last_run
    }

    pub(crate) fn run_makes(&mut self, run: u64, name: &'static str) {
        self.runs.entry(run).or_default().makes.insert(name);
    }

    pub(crate) fn run_keeps(&mut self, run: u64, key: String) {
        self.runs.entry(run).or_default().keeps.insert(key);
    }

    pub(crate) const fn effect(&mut self) -> u64 {
        self.effects += 1;
        self.effects
    }

    /// A step has returned: from now on this is its result.
    pub(crate) fn step_returned(&mut self, task: &TaskId, turn: u32, step: u32, result: u64) {
        let key = (task.clone(), turn, step);
        let first = *self.results.entry(key).or_insert(result);
        if first != result {
            self.broken(format!(
                "G14: step {step} of task {task} gave {first}, then {result}"
            ));
        }
    }

    /// A client was told of this task.
    pub(crate) fn told(&mut self, task: &Task) {
        self.note(|| format!("told {} {}", task.id, task.status.state));
        let Some(seen) = self.tasks.get_mut(&task.id) else {
            self.broken(format!(
                "G1: task {} was told of and is not stored",
                task.id
            ));
            return;
        };
        seen.acknowledged = true;
        if !seen.states.contains(&task.status.state) {
            let (id, state) = (&task.id, task.status.state);
            self.broken(format!("G16: task {id} was never {state}"));
        }
    }

    /// A call was refused. Our own mistakes are never the answer.
    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.note(|| format!("refused {refusal:?}"));
        if matches!(refusal, Refusal::Internal | Refusal::InvalidAgentResponse) {
            self.broken("G11: an internal error was answered".to_owned());
        }
    }

    /// A message is on its way, perhaps not for the first time.
    pub(crate) fn says(&mut self, message: &str) {
        self.said.entry(message.to_owned()).or_insert(Said::Unheard);
    }

    /// However often a keyed message is sent, there is one answer to it.
    pub(crate) fn same_answer(&mut self, message: &str, answer: &str) {
        let first = self.answers.entry(message.to_owned());
        let first = first.or_insert_with(|| answer.to_owned()).clone();
        if first != answer {
            self.broken(format!(
                "G4: {message} was answered with {first}, then with {answer}"
            ));
        }
    }

    pub(crate) fn said(&mut self, message: &str, what: Said) {
        self.said.insert(message.to_owned(), what);
    }

    pub(crate) fn seq_of(&self, task: &TaskId, id: EventId) -> Option<u64> {
        let seen = self.tasks.get(task)?;
        let event = seen.log.iter().find(|event| event.id == id);
        event.map(|event| event.seq)
    }

    /// The state as of an event.
    pub(crate) fn state_at(&self, task: &TaskId, seq: u64) -> Option<TaskState> {
        let log = &self.tasks.get(task)?.log;
        let seen = log.iter().rev().filter(|event| event.seq <= seq);
        let mut states = seen.filter_map(|event| match &event.event {
            Event::Status(update) => Some(update.status.state),
            Event::Artifact(_) => None,
        });
        states.next()
    }

    /// The stored event that a reader was shown.
    pub(crate) fn is_stored(&self, task: &TaskId, shown: &LoggedEvent) -> bool {
        let seen = self.tasks.get(task);
        let stored = seen.and_then(|seen| seen.log.iter().find(|event| event.seq == shown.seq));
        stored.is_some_and(|stored| same(stored, shown))
    }

    pub(crate) fn last_seq(&self, task: &TaskId) -> u64 {
        let last = self.tasks.get(task).and_then(|seen| seen.log.last());
        last.map_or(0, |event| event.seq)
    }

    /// After everything: what was taken is kept once, what was refused is not.
    pub(crate) fn check_said(&mut self) {
        let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
        let views: Vec<Task> = self
            .tasks
            .values()
            .map(|seen| seen.record.view(usize::MAX, false))
            .collect();
        for message in views.iter().flat_map(|view| view.history.iter().flatten()) {
            *kept.entry(&message.id).or_default() += 1;
        }
        let mut faults = Vec::new();
        for (message, what) in &self.said {
            let times = kept.get(message.as_str()).copied().unwrap_or(0);
            let fits = match what {
                Said::Unheard => times <= 1,
                Said::Taken => times == 1,
                Said::Refused => times == 0,
            };
            if !fits {
                faults.push(format!(
                    "G3: message {message} was {what:?} and is there {times} times"
                ));
            }
        }
        for fault in faults {
            self.broken(fault);
        }
    }
}

impl Seen {
    /// Whether `next` may follow what is stored.
    fn follows(&self, next: &TaskRecord, faults: &mut Vec<String>) {
        let id = next.id();
        if self.turn == 0 {
            let events = next.events_after(0);
            if next.version() != 1 || users(next) != 1 || !numbered(events) {
                faults.push(format!("task {id} begins at version {}", next.version()));
            }
            return;
        }
        let last = &self.record;
        if last.state().is_terminal() {
            faults.push(format!("G2: task {id} was {} and changes", last.state()));
        }
        if next.version() != last.version() + 1 {
            faults.push(format!("G2: a commit of task {id} is lost"));
        }
        if next.epoch() < last.epoch() {
            faults.push(format!("G5: the epoch of task {id} goes back"));
        }
        let kept = self
            .log
            .iter()
            .eq(next.events_after(0).take(self.log.len()));
        if !kept || !numbered(next.events_after(0)) {
            faults.push(format!("G7: the log of task {id} has changed"));
        }
        let answered = last.state().is_interrupted() && !next.state().is_at_rest();
        if users(next) != users(last) + usize::from(answered) {
            faults.push(format!("G3: task {id} took {} messages", users(next)));
        }
    }
}

fn users(record: &TaskRecord) -> usize {
    let view = record.view(usize::MAX, false);
    let by_user = |message: &&Message| message.role == Role::User;
    view.history.iter().flatten().filter(by_user).count()
}

fn numbered<'a>(mut events: impl Iterator<Item = &'a LoggedEvent>) -> bool {
    let mut n = 0;
    events.all(|event| {
        n += 1;
        event.seq == n
    })
}

/// Whether an event was shown as it is stored; bytes kept elsewhere are put
/// back in what is shown.
fn same(stored: &LoggedEvent, shown: &LoggedEvent) -> bool {
    if stored == shown {
        return true;
    }
    let (Event::Artifact(a), Event::Artifact(b)) = (&stored.event, &shown.event) else {
        return false;
    };
    let in_store = |content: &PartContent| matches!(content, PartContent::Stored(_));
    stored.id == shown.id
        && a.append == b.append
        && a.artifact.id == b.artifact.id
        && a.artifact.parts.iter().any(|part| in_store(&part.content))
        && !b.artifact.parts.iter().any(|part| in_store(&part.content))
}
