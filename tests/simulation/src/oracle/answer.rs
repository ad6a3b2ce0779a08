//! Answers and frames: what clients are told.

use super::{Answer, Life, Moment, Oracle, Said, Seen};
use a2a_lambda::task::{
    Artifact, Event, LoggedEvent, Message, Part, PartContent, Task, TaskRecord,
};

impl Oracle {
    /// A client was told of this task: as it was stored at some time since its
    /// call began, and of no task that it knew to be deleted by then.
    pub(crate) fn told(&mut self, task: &Task) -> Option<Life> {
        self.note(|| format!("told {} {}", task.id, task.status.state));
        let first = task.history.iter().flatten().next();
        let said = first.and_then(|message| self.said_in.get(&message.id));
        let lives: Vec<Life> = said.into_iter().flatten().cloned().collect();
        let of_id = lives.into_iter().filter(|life| life.task == task.id);
        let mut why = format!("G1: task {} was told of and is not stored", task.id);
        for life in of_id {
            let begun = self.begun;
            let Some(seen) = self.tasks.get_mut(&life) else {
                continue;
            };
            let faults = seen.shown_as(task, begun);
            if faults.is_none() {
                seen.acknowledged = true;
                return Some(life);
            }
            why = faults.map_or(why, |fault| format!("{fault} ({life})"));
        }
        self.broken(why);
        None
    }

    /// The same in a list. Of a task that is taken away meanwhile it may show that
    /// it was there, without its content.
    pub(crate) fn listed(&mut self, task: &Task) {
        if task.history.iter().flatten().next().is_some() {
            self.told(task);
            return;
        }
        self.note(|| format!("listed {} {}", task.id, task.status.state));
        let begun = self.begun;
        let mut lives = self.tasks.iter().filter(|(life, _)| life.task == task.id);
        if !lives.any(|(_, seen)| !seen.is_gone(begun)) {
            let text = format!("G19: task {} is listed, and is deleted", task.id);
            self.broken(text);
        }
    }

    /// A message is on its way, perhaps not for the first time.
    pub(crate) fn says(&mut self, message: &str) {
        self.said.entry(message.to_owned()).or_insert(Said::Unheard);
    }

    /// However often a keyed message is sent, there is one answer to it, as long
    /// as its task is not deleted.
    pub(crate) fn same_answer(&mut self, message: &str, answer: Answer) {
        let is_over = |it: &Answer| match it {
            Answer::Task(life) => self.tasks.get(life).is_some_and(|seen| seen.ended),
            Answer::Reply(_) => false,
        };
        let first = self.answers.get(message).cloned();
        match first {
            Some(first) if first == answer || is_over(&answer) => {}
            Some(first) if !is_over(&first) => self.broken(format!(
                "G4: {message} was answered with {first:?}, then with {answer:?}"
            )),
            _ => drop(self.answers.insert(message.to_owned(), answer)),
        }
    }

    pub(crate) fn said(&mut self, message: &str, what: Said) {
        self.said.insert(message.to_owned(), what);
    }

    /// Whether a reader may go on in this task: its call began when the task was
    /// not known to be deleted, and no other had its id.
    pub(crate) fn may_resume(&self, life: &Life) -> bool {
        let gone = self
            .tasks
            .get(life)
            .is_some_and(|it| it.is_gone(self.begun));
        let heir = self.current.get(&life.task).filter(|heir| *heir != life);
        let began = heir.and_then(|heir| self.tasks.get(heir)).map(Seen::began);
        !gone && began.is_none_or(|began| began > self.begun)
    }

    /// The stored event that a reader was shown.
    pub(crate) fn is_stored(&self, life: &Life, shown: &LoggedEvent) -> bool {
        let seen = self.tasks.get(life);
        let stored = seen.and_then(|seen| seen.log.iter().find(|event| event.seq == shown.seq));
        stored.is_some_and(|stored| same(stored, shown))
    }
}

impl Seen {
    /// What is wrong with an answer to a call that began at `begun`.
    fn shown_as(&self, task: &Task, begun: Moment) -> Option<String> {
        let fits = |record: &TaskRecord| is_shown(record, task);
        let before = self.stored.iter().filter(|(at, _)| *at <= begun).count();
        let (old, new) = self.stored.split_at(before.saturating_sub(1));
        let (id, state) = (&task.id, task.status.state);
        if new.iter().any(|(_, record)| fits(record)) {
            let gone = self.is_gone(begun);
            return gone.then(|| format!("G19: task {id} is shown, and is deleted"));
        }
        let earlier = old.iter().find(|(_, record)| fits(record));
        Some(match earlier {
            Some((_, record)) => {
                let (then, now) = (record.version(), self.record.version());
                format!("G16: task {id} goes back to version {then} of {now}")
            }
            None => format!("G16: task {id} was never as it is shown: {state}"),
        })
    }
}

/// Whether `task` shows this version.
fn is_shown(record: &TaskRecord, task: &Task) -> bool {
    if *record.status() != task.status {
        return false;
    }
    let stored = record.view(usize::MAX, true);
    let artifacts = |task: &Task| task.artifacts.clone().unwrap_or_default();
    let (made, shown) = (artifacts(&stored), artifacts(task));
    let alike = made.len() == shown.len()
        && made
            .iter()
            .zip(&shown)
            .all(|(a, b)| a.id == b.id && parts_alike(a, b));
    stored.last_event == task.last_event && same_words(&stored, task) && alike
}

fn same_words(stored: &Task, shown: &Task) -> bool {
    let words = |task: &Task| -> Vec<(String, Vec<Part>)> {
        let history = task.history.iter().flatten();
        let word = |message: &Message| (message.id.clone(), message.parts.clone());
        history.map(word).collect()
    };
    words(stored) == words(shown) && stored.transitions == shown.transitions
}

fn parts_alike(stored: &Artifact, shown: &Artifact) -> bool {
    let alike = |a: &Part, b: &Part| in_store(a) || a.content == b.content;
    stored.parts.len() == shown.parts.len()
        && stored
            .parts
            .iter()
            .zip(&shown.parts)
            .all(|(a, b)| alike(a, b))
}

const fn in_store(part: &Part) -> bool {
    matches!(part.content, PartContent::Stored(_))
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
    stored.id == shown.id
        && a.append == b.append
        && a.artifact.id == b.artifact.id
        && a.artifact.parts.iter().any(in_store)
        && !b.artifact.parts.iter().any(in_store)
}
