//! Checks runs of skills: their output, the values they keep, and the thread they read.

use super::{Moment, Oracle};
use crate::skills::{SCRIPT, SLOW, digest_of};
use a2a_lambda::store::TaskWrite;
use a2a_lambda::task::{Event, Message, Part, PartContent, TaskId};
use std::collections::BTreeSet;

/// One run of a skill.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// The message that opened its turn.
    pub(super) message: String,
    pub(super) turn: u32,
    /// The first run of its turn.
    mark: u64,
    began: Moment,
    makes: BTreeSet<&'static str>,
    keeps: BTreeSet<String>,
}

impl Oracle {
    pub(crate) fn run_begins(
        &mut self,
        task: &TaskId,
        turn: u32,
        message: &str,
        program: &str,
    ) -> (u64, u64) {
        let number = self.runs.len() as u64 + 1;
        let turn_key = (task.to_string(), turn, message.to_owned());
        let mark = *self.marks.entry(turn_key).or_insert(number);
        let run = Run {
            message: message.to_owned(),
            turn,
            mark,
            began: self.passes(),
            ..Run::default()
        };
        self.runs.insert(number, run);
        let starts = self.starts.entry(message.to_owned()).or_default();
        *starts += 1;
        let starts = *starts;
        self.note(|| format!("run {number} of {task} turn {turn} by {message}: {program}"));
        // Without a step or a saved value nothing resets the attempts, and a run that was
        // released is none. A keyed message may be that of a second task.
        let counts = !program.contains(['S', 'D', 'G']) && !self.is_repeated(message);
        let released = self.released.get(message).copied().unwrap_or_default();
        if starts > crate::clients::ATTEMPTS + released && counts {
            self.broken(format!(
                "G14: turn {turn} of task {task} ran {starts} times"
            ));
        }
        (number, mark)
    }

    /// Whether a message was sent again after a task of it was deleted.
    fn is_repeated(&self, message: &str) -> bool {
        let lives = self.said_in.get(message).map_or(&[][..], Vec::as_slice);
        message.starts_with("keyed")
            && lives
                .iter()
                .any(|life| self.tasks.get(life).is_some_and(|seen| seen.ended))
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

    /// A step has returned: from now on its result must not change.
    pub(crate) fn step_returned(&mut self, message: &str, step: u32, result: u64) {
        let key = (message.to_owned(), step);
        let first = *self.results.entry(key).or_insert(result);
        if first != result && !self.is_repeated(message) {
            self.broken(format!(
                "G14: step {step} of {message} gave {first}, then {result}"
            ));
        }
    }

    /// A run has read its thread. The thread must not contain a message deleted before.
    pub(crate) fn heard<'a>(&mut self, run: u64, thread: impl Iterator<Item = &'a Message>) {
        let since = self.runs.get(&run).map_or(Moment(0), |run| run.began);
        let mut gone = Vec::new();
        for message in thread {
            let by = |number| self.runs.get(&number).map(|run| run.message.clone());
            let said = speaker(&message.parts).and_then(by);
            let said = said.unwrap_or_else(|| message.id.clone());
            if self.is_gone(&said, since) {
                gone.push(said);
            }
        }
        for said in gone {
            self.broken(format!(
                "G19: run {run} reads message {said}, which is deleted"
            ));
        }
    }

    /// A run finds a value that the run `keeper` has kept in the thread.
    pub(crate) fn remembers(&mut self, run: u64, keeper: u64) {
        let since = self.runs.get(&run).map_or(Moment(0), |run| run.began);
        let Some(keeper) = self.runs.get(&keeper) else {
            return;
        };
        let message = keeper.message.clone();
        let lives = self.said_in.get(&message).map_or(&[][..], Vec::as_slice);
        let cleared = |seen: &super::Seen| seen.cleared.is_some_and(|at| at < since);
        let gone = |life| self.tasks.get(life).is_some_and(cleared);
        if !lives.is_empty() && lives.iter().all(gone) {
            self.broken(format!(
                "G19: run {run} finds a value of {message}, although its context is deleted"
            ));
        }
    }

    /// A completed task has the complete output of its last run.
    pub(super) fn check_artifacts(&self, write: &TaskWrite, faults: &mut Vec<String>) {
        let view = write.record.view(0, true);
        let artifacts = view.artifacts.unwrap_or_default();
        let named = |name: &str| artifacts.iter().find(|it| it.name.as_deref() == Some(name));
        let output = named(SCRIPT).or_else(|| named(SLOW));
        let run = output.and_then(|it| it.parts.first()).and_then(output_of);
        let id = &write.record.id;
        let Some((number, run)) = run.and_then(|n| Some((n, self.runs.get(&n)?))) else {
            faults.push(format!("G6: completed task {id} has no output"));
            return;
        };
        for name in ["report", "kept"] {
            let parts = named(name).into_iter().flat_map(|it| it.parts.iter());
            let text: String = parts.filter_map(text_of).collect();
            let maker = text.split_once(':');
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
            let whole: String = chunks.iter().map(|n| format!("{maker}:{n}")).collect();
            let mine = !run.makes.contains(name) || maker == run.mark.to_string();
            if text != whole || !mine {
                faults.push(format!(
                    "G6: run {number} of task {id} left {name} as {text:?}"
                ));
            }
        }
        let blob = named("blob").and_then(|it| it.parts.first());
        let whole = blob.is_some_and(|part| match &part.content {
            PartContent::Stored(blob) => blob.sha256 == digest_of(run.mark),
            _ => false,
        });
        if run.makes.contains("blob") && !whole {
            faults.push(format!(
                "G6: the blob of task {id} was not made by run {number}"
            ));
        }
        check_said_once(write, faults);
        let session = write.thread.as_ref().map(|it| &it.record.state.session);
        let kept = |key: &String| session.is_some_and(|session| session.contains_key(key));
        // A turn of a deleted context keeps no value in it.
        let context = write.record.context_id.to_string();
        if !run.keeps.iter().all(kept) && !self.unwanted.contains(&context) {
            faults.push(format!("task {id} completed without its session values"));
        }
    }
}

/// No run of a turn says again what an earlier run has said.
fn check_said_once(write: &TaskWrite, faults: &mut Vec<String>) {
    let (record, id) = (&write.record, &write.record.id);
    let history = record.history.iter().chain(&record.status.message);
    let mut texts: Vec<&str> = Vec::new();
    for text in history
        .filter_map(|message| message.parts.first())
        .filter_map(text_of)
    {
        if text.starts_with("run ") && texts.contains(&text) {
            faults.push(format!("G7: task {id} says `{text}` twice"));
        }
        texts.push(text);
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        _ => None,
    }
}

/// The run that made this result.
fn output_of(part: &Part) -> Option<u64> {
    match &part.content {
        PartContent::Data(data) => data.get("run").and_then(serde_json::Value::as_u64),
        _ => None,
    }
}

/// The run that sent this update or question.
fn speaker(parts: &[Part]) -> Option<u64> {
    let text = parts.first().and_then(text_of)?;
    let (mark, _) = text.strip_prefix("run ")?.split_once(' ')?;
    mark.parse().ok()
}

/// The run that made an event, if the event carries a run number.
pub(super) fn run_of(event: &Event) -> Option<u64> {
    match event {
        Event::Status(update) => speaker(&update.status.message.as_ref()?.parts),
        Event::Artifact(update) => {
            let part = update.artifact.parts.first()?;
            let chunk = text_of(part).and_then(|text| text.split_once(':')?.0.parse().ok());
            chunk.or_else(|| output_of(part))
        }
    }
}
