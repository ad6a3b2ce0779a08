//! Keeps what the log of this process says about each task: turns, failures with their
//! causes, and calls of webhooks. A cause is in the log alone, never in a task.

use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The most notes that are kept; the oldest ones go.
const MOST: usize = 5_000;

/// The newest lines of the log that name a task. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogNotes {
    notes: Arc<Mutex<VecDeque<TaskNote>>>,
}

/// One line.
#[derive(Debug)]
struct TaskNote {
    task: String,
    note: Map<String, Value>,
}

impl LogNotes {
    /// The layer that reads the events of the log.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'s> LookupSpan<'s>,
    {
        let ours = |event: &tracing::Metadata<'_>| {
            *event.level() <= Level::INFO && event.target().starts_with("a2a_lambda")
        };
        NoteTaking(self.clone()).with_filter(filter_fn(ours).with_max_level_hint(LevelFilter::INFO))
    }

    /// The notes about a task, oldest first.
    pub(super) fn of(&self, task: &str) -> Value {
        let notes = self.kept();
        let task_notes = notes.iter().filter(|note| note.task == task);
        task_notes
            .map(|note| Value::Object(note.note.clone()))
            .collect()
    }

    fn add(&self, note: TaskNote) {
        let mut notes = self.kept();
        if notes.len() >= MOST {
            notes.pop_front();
        }
        notes.push_back(note);
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<TaskNote>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct NoteTaking(LogNotes);

impl<S: Subscriber> Layer<S> for NoteTaking {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let target = event.metadata().target();
        let mut visitor = ReadFields::default();
        event.record(&mut visitor);
        // The line of a call that ran no turn says nothing about the task's own life.
        let of_call = ["a2a_lambda::call", "a2a_lambda::left_out"].contains(&target);
        if of_call && !visitor.fields.contains_key("attempt") {
            return;
        }
        let Some(task) = visitor.task else { return };
        let mut note = visitor.fields;
        note.insert("at".to_owned(), json!(now_ms()));
        note.insert("level".to_owned(), event.metadata().level().as_str().into());
        self.0.add(TaskNote { task, note });
    }
}

fn now_ms() -> i64 {
    use a2a_lambda::engine::{Clock as _, SystemClock};
    SystemClock.now().as_millis()
}

/// The fields of one event, and the task that it names.
#[derive(Default)]
struct ReadFields {
    task: Option<String>,
    fields: Map<String, Value>,
}

impl ReadFields {
    fn put(&mut self, name: &str, value: Value) {
        let short = name.strip_prefix("a2a.").unwrap_or(name);
        match (short, value) {
            ("task" | "task.id", Value::String(task)) => self.task = Some(task),
            (short, value) => {
                self.fields.insert(short.to_owned(), value);
            }
        }
    }
}

impl Visit for ReadFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::{LogNotes, MOST};
    use tracing::Level;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[test]
    fn a_failure_is_kept_with_its_cause_and_only_for_its_task() {
        let notes = LogNotes::default();
        let log = tracing_subscriber::registry().with(notes.layer());
        tracing::subscriber::with_default(log, || {
            tracing::event!(target: "a2a_lambda::engine", Level::ERROR, task.id = "t1", error.code = "X", error.cause = "why", "failed");
            tracing::event!(target: "other", Level::ERROR, task.id = "t1", "not ours");
            tracing::event!(target: "a2a_lambda::call", Level::INFO, a2a.task = "t1", "call");
            tracing::event!(target: "a2a_lambda::call", Level::INFO, a2a.task = "t1", a2a.attempt = 2, "call");
        });
        let found = notes.of("t1");
        assert_eq!(found.as_array().unwrap().len(), 2);
        // The call that ran a turn.
        assert_eq!(found[1]["attempt"], 2);
        assert_eq!(found[0]["error.cause"], "why");
        assert_eq!(found[0]["message"], "failed");
        assert_eq!(notes.of("t2"), serde_json::json!([]));
    }

    #[test]
    fn the_oldest_notes_go_first() {
        let notes = LogNotes::default();
        let log = tracing_subscriber::registry().with(notes.layer());
        tracing::subscriber::with_default(log, || {
            for n in 0..=MOST {
                tracing::event!(target: "a2a_lambda::turn", Level::INFO, a2a.task = "t", n, "turn");
            }
        });
        let found = notes.of("t");
        assert_eq!(found.as_array().unwrap().len(), MOST);
        assert_eq!(found[0]["n"], 1);
    }
}
