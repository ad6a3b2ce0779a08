//! Checks responses and frames: the tasks that clients see.

use super::{Life, Moment, Oracle, Said, Seen};
use a2a_lambda::task::{
    Artifact, Event, LoggedEvent, Message, Part, PartContent, Task, TaskRecord,
};

impl Oracle {
    /// Checks a task that a client received. It must be a version that was stored at some time
    /// since the call began, and not of a task known to be deleted by then.
    pub(crate) fn reported(&mut self, task: &Task) -> Option<Life> {
        self.note(|| format!("shown {} {}", task.id, task.status.state));
        let first = task.history.iter().flatten().next();
        let said = first.and_then(|message| self.said_in.get(&message.id));
        let lives: Vec<Life> = said.into_iter().flatten().cloned().collect();
        let of_id = lives.into_iter().filter(|life| life.task == task.id);
        let mut why = format!("G1: task {} was shown and is not stored", task.id);
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

    /// Checks a task in a list. For a task that is deleted meanwhile the list may show that it
    /// existed, without its content.
    pub(crate) fn listed(&mut self, task: &Task) {
        if task.history.iter().flatten().next().is_some() {
            self.reported(task);
            return;
        }
        self.note(|| format!("listed {} {}", task.id, task.status.state));
        let begun = self.begun;
        let mut lives = self.tasks.iter().filter(|(life, _)| life.task == task.id);
        if !lives.any(|(_, seen)| !seen.is_gone(begun)) {
            let text = format!("G19: task {} is listed although it is deleted", task.id);
            self.broken(text);
        }
    }

    /// Records that a message is sent, perhaps not for the first time.
    pub(crate) fn says(&mut self, message: &str) {
        self.said.entry(message.to_owned()).or_insert(Said::Unheard);
    }

    /// Checks that every repeat of a keyed message gets the same task, as long as it is not
    /// deleted.
    pub(crate) fn same_answer(&mut self, message: &str, answer: Life) {
        let is_over = |life: &Life| self.tasks.get(life).is_some_and(|seen| seen.ended);
        let first = self.answers.get(message).cloned();
        match first {
            Some(first) if first == answer || is_over(&answer) => {}
            Some(first) if !is_over(&first) => self.broken(format!(
                "G4: {message} got {first:?} first and {answer:?} later"
            )),
            _ => drop(self.answers.insert(message.to_owned(), answer)),
        }
    }

    pub(crate) fn said(&mut self, message: &str, what: Said) {
        self.said.insert(message.to_owned(), what);
    }

    /// Whether a reader may resume in this task: when its call began, the task was not known
    /// to be deleted, and no other task had its id.
    pub(crate) fn may_resume(&self, life: &Life) -> bool {
        let gone = self
            .tasks
            .get(life)
            .is_some_and(|it| it.is_gone(self.begun));
        let heir = self.current.get(&life.task).filter(|heir| *heir != life);
        let began = heir.and_then(|heir| self.tasks.get(heir)).map(Seen::began);
        !gone && began.is_none_or(|began| began > self.begun)
    }

    /// Whether the event shown to a reader equals the stored one.
    pub(crate) fn is_stored(&self, life: &Life, shown: &LoggedEvent) -> bool {
        let seen = self.tasks.get(life);
        let stored = seen.and_then(|seen| seen.log.iter().find(|event| event.seq == shown.seq));
        stored.is_some_and(|stored| same(stored, shown))
    }
}

impl Seen {
    /// Describes the fault of a response to a call that began at `begun`, if there is one.
    fn shown_as(&self, task: &Task, begun: Moment) -> Option<String> {
        let fits = |record: &TaskRecord| is_shown(record, task);
        let before = self.stored.iter().filter(|(at, _)| *at <= begun).count();
        let (old, new) = self.stored.split_at(before.saturating_sub(1));
        let (id, state) = (&task.id, task.status.state);
        if new.iter().any(|(_, record)| fits(record)) {
            let gone = self.is_gone(begun);
            return gone.then(|| format!("G19: task {id} is shown although it is deleted"));
        }
        let earlier = old.iter().find(|(_, record)| fits(record));
        Some(match earlier {
            Some((_, record)) => {
                let (then, now) = (record.version, self.record.version);
                format!(
                    "G16: task {id} is shown as of version {then}, older than the call; the latest is {now}"
                )
            }
            None => format!("G16: task {id} never had the content shown in state {state}"),
        })
    }
}

/// Whether `task` shows this version.
fn is_shown(record: &TaskRecord, task: &Task) -> bool {
    if record.status != task.status {
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

/// Whether the event shown equals the stored one. A part that the store keeps as an object
/// must be shown with its bytes.
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
