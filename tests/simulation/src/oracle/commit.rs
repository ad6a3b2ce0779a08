//! Checks commits: each must be allowed to follow the stored version.

use super::skill::run_of;
use super::{Life, Moment, Oracle, Said, Seen};
use crate::fleet;
use crate::skills::ECHO;
use a2a_lambda::store::TaskWrite;
use a2a_lambda::store::queue::TaskImage;
use a2a_lambda::task::{LoggedEvent, Role, TaskRecord, TaskState};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Oracle {
    /// Whether this very commit is already stored.
    pub(crate) fn knows(&self, record: &TaskRecord) -> bool {
        let Some(id) = record.write_ids.last() else {
            return false;
        };
        let seen = self.tasks.get(&Life::of(record));
        let made = seen.and_then(|seen| seen.writes.get(id.as_str()));
        made.is_some_and(|versions| versions.contains(&record.version))
    }

    /// Checks and records a commit that was stored.
    pub(crate) fn committed(&mut self, write: &TaskWrite) {
        let record = &write.record;
        let life = Life::of(record);
        self.note(|| line(write, &life));
        let now = self.passes();
        let mut faults = Vec::new();
        self.check_life(write, &life, &mut faults);
        self.check_added(write, &life, &mut faults);
        self.check_thread(write, &mut faults);
        let ends = record.is_expired(write.now);
        let follows = record
            .skill
            .as_ref()
            .is_some_and(|skill| skill.as_str() != ECHO);
        if record.state() == TaskState::Completed && follows && !ends {
            self.check_artifacts(write, &mut faults);
        }
        let seen = self.tasks.remove(&life);
        let mut seen = seen.unwrap_or_else(|| Seen::new(record));
        let users = users(record);
        let releases = record.dispatch() == Some(record.version) && record.not_before.is_some();
        if let Some(message) = users.last().filter(|_| releases) {
            *self.released.entry(message.clone()).or_default() += 1;
        }
        if ends {
            seen.ends(record, &users, &mut faults);
        } else {
            seen.follows(record, &users, &mut faults);
        }
        let events: Vec<_> = record
            .events_after(seen.log.len() as u64)
            .cloned()
            .collect();
        let turn = TaskImage::of(record).turn;
        self.check_words(&life, turn, &users, &events, &mut faults);
        seen.log.extend(events);
        seen.users = users;
        if seen.turn == 0 || record.epoch > seen.record.epoch {
            seen.runner = self.begun;
        }
        seen.takes(write, now, &mut faults);
        self.tasks.insert(life, seen);
        for fault in faults {
            self.broken(fault);
        }
    }

    /// One id has one living task at a time, and a deletion ends one of them.
    fn check_life(&mut self, write: &TaskWrite, life: &Life, faults: &mut Vec<String>) {
        let before = self.current.insert(life.task.clone(), life.clone());
        if let Some(before) = before.filter(|before| before != life) {
            let ended = self.tasks.get(&before).is_some_and(|seen| seen.ended);
            if !ended {
                faults.push(format!(
                    "G2: task {before} is alive, and {life} takes its id"
                ));
            }
            if self.tasks.contains_key(life) {
                faults.push(format!("G2: task {life} takes its id back from {before}"));
            }
        }
        if !write.record.is_expired(write.now) {
            return;
        }
        let context = write.record.context_id.to_string();
        let unwanted = self.unwanted.contains(life.task.as_str());
        if !unwanted && !self.unwanted.contains(&context) {
            faults.push(format!(
                "G1: task {life} is deleted, and no client has asked for it"
            ));
        }
        let call = (self.begun, life.task.clone());
        let first = self.deletes.entry(call).or_insert_with(|| life.clone());
        if first != life {
            faults.push(format!(
                "G1: the call that deletes task {first} also deletes {life}"
            ));
        }
    }

    /// Each message of a client is in one task only. Output of a run is in the turn that the
    /// run belongs to.
    fn check_words(
        &mut self,
        life: &Life,
        turn: u32,
        users: &[String],
        events: &[LoggedEvent],
        faults: &mut Vec<String>,
    ) {
        for message in users {
            let lives = self.said_in.entry(message.clone()).or_default();
            if lives.contains(life) {
                continue;
            }
            // A keyed message is sent again, even after its task is deleted.
            if !lives.is_empty() && !message.starts_with("keyed") {
                faults.push(format!("G2: {message} of task {lives:?} is also in {life}"));
            }
            lives.push(life.clone());
        }
        for number in events.iter().filter_map(|event| run_of(&event.event)) {
            let Some(run) = self.runs.get(&number) else {
                continue;
            };
            if !users.contains(&run.message) {
                let message = &run.message;
                faults.push(format!("G2: run {number} of {message} writes to {life}"));
            } else if run.turn != turn {
                let its = run.turn;
                faults.push(format!(
                    "G5: run {number} of turn {its} writes to turn {turn} of {life}"
                ));
            }
        }
    }

    /// Checks that no release loses or changes the member that the next release added to a
    /// task.
    fn check_added(&mut self, write: &TaskWrite, life: &Life, faults: &mut Vec<String>) {
        if !self.mixed {
            return;
        }
        let record = &write.record;
        let seen = self.tasks.get(life);
        let before = seen.and_then(|seen| fleet::added_to_task(&seen.record));
        let now = fleet::added_to_task(record);
        if !fleet::follows(before.as_ref(), now.as_ref(), write.id()) {
            faults.push(format!(
                "G17: the later release's member in task {life} was {before:?} and is {now:?}"
            ));
        }
    }

    /// At the end: an accepted message is stored once, a refused one is not stored.
    pub(crate) fn check_said(&mut self) {
        let mut kept: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for seen in self.tasks.values() {
            for message in &seen.users {
                let (all, living) = kept.entry(message).or_default();
                *all += 1;
                *living += usize::from(!seen.ended);
            }
        }
        let mut faults = Vec::new();
        for (message, what) in &self.said {
            let (all, living) = kept.get(message.as_str()).copied().unwrap_or_default();
            let again = message.starts_with("keyed");
            let once = if again { living <= 1 } else { all <= 1 };
            let fits = match what {
                Said::Unheard => once,
                Said::Taken => once && all > 0,
                // A task may be deleted while its sender waits for the response.
                Said::Refused => living == 0,
            };
            if !fits {
                faults.push(format!(
                    "G3: message {message} was {what:?} and is stored {all} times"
                ));
            }
        }
        for fault in faults {
            self.broken(fault);
        }
    }
}

impl Seen {
    fn new(record: &TaskRecord) -> Self {
        Self {
            record: Arc::new(record.clone()),
            stored: Vec::new(),
            writes: BTreeMap::new(),
            log: Vec::new(),
            users: Vec::new(),
            turn: 0,
            runner: Moment::default(),
            hand_overs: 0,
            dispatched: false,
            acknowledged: false,
            ended: false,
            deleted: None,
            cleared: None,
        }
    }

    /// Records a version that is stored from `now` on.
    fn takes(&mut self, write: &TaskWrite, now: Moment, faults: &mut Vec<String>) {
        let record = &write.record;
        let image = TaskImage::of(record);
        self.dispatched &= self.turn == image.turn;
        self.turn = image.turn;
        // A task in a terminal state keeps no number.
        self.hand_overs = self.hand_overs.max(record.used.hand_overs);
        self.dispatched |= image.dispatch == Some(image.version);
        if let Some(id) = write.id() {
            let made = self.writes.entry(id.as_str().to_owned()).or_default();
            made.push(record.version);
            if made.len() > 1 {
                let life = Life::of(record);
                faults.push(format!(
                    "G16: one write of task {life} is stored as versions {made:?}"
                ));
            }
        }
        self.ended = record.is_expired(write.now);
        self.record = Arc::new(record.clone());
        self.stored.push((now, Arc::clone(&self.record)));
    }

    /// Checks that `next` may follow the stored version.
    fn follows(&self, next: &TaskRecord, users: &[String], faults: &mut Vec<String>) {
        let id = Life::of(next);
        if self.turn == 0 {
            let events = next.events_after(0);
            if next.version != 1 || users.len() != 1 || !numbered(events) {
                faults.push(format!("task {id} begins at version {}", next.version));
            }
            return;
        }
        let last = &self.record;
        if last.state().is_terminal() {
            faults.push(format!(
                "G2: task {id} was {} and has changed",
                last.state()
            ));
        }
        if self.deleted.is_some() {
            faults.push(format!("G19: task {id} is deleted and has changed"));
        }
        if next.epoch < last.epoch {
            faults.push(format!("G5: the epoch of task {id} decreases"));
        }
        let answered = last.state().is_interrupted() && !next.state().is_at_rest();
        if users.len() != self.users.len() + usize::from(answered) {
            faults.push(format!("G3: task {id} has {} client messages", users.len()));
        }
        self.adds(next, faults);
    }

    /// Checks that `next` is the stored version with its life ended.
    fn ends(&self, next: &TaskRecord, users: &[String], faults: &mut Vec<String>) {
        let last = &self.record;
        if next.state() != last.state() || users != self.users || next.epoch != last.epoch {
            let life = Life::of(next);
            faults.push(format!("G2: task {life} is changed by its deletion"));
        }
        self.adds(next, faults);
    }

    /// Checks that no stored content is lost.
    fn adds(&self, next: &TaskRecord, faults: &mut Vec<String>) {
        let id = Life::of(next);
        if next.version != self.record.version + 1 {
            faults.push(format!("G2: a commit of task {id} is lost"));
        }
        let kept = self
            .log
            .iter()
            .eq(next.events_after(0).take(self.log.len()));
        if !kept || !numbered(next.events_after(0)) {
            faults.push(format!("G7: the log of task {id} has changed"));
        }
    }
}

/// The line of a commit in the trace.
fn line(write: &TaskWrite, life: &Life) -> String {
    let record = &write.record;
    let image = TaskImage::of(record);
    format!(
        "commit {life} v{} e{} {} turn {} dispatch {:?} events {}{}",
        record.version,
        record.epoch,
        record.state(),
        image.turn,
        image.dispatch,
        record.events_after(0).count(),
        if record.is_expired(write.now) {
            " ends"
        } else {
            ""
        },
    )
}

fn users(record: &TaskRecord) -> Vec<String> {
    let view = record.view(usize::MAX, false);
    let history = view.history.into_iter().flatten();
    let by_user = history.filter(|message| message.role == Role::User);
    by_user.map(|message| message.id).collect()
}

fn numbered<'a>(mut events: impl Iterator<Item = &'a LoggedEvent>) -> bool {
    let mut n = 0;
    events.all(|event| {
        n += 1;
        event.seq == n
    })
}
