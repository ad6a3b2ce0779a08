//! What belongs to the call or turn that runs now: its capacity units, its trace, and the
//! names that its log line has.
//!
//! It is local to a Tokio task, so that stores and skills need no parameter for it. Code
//! that spawns a task enters the scope again there.

use super::trace::TraceContext;
use crate::clock::lock;
use crate::store::Meter;
use crate::task::TaskRecord;
use a2a_lambda_skill::CallNames;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

tokio::task_local! {
    static CURRENT: CallScope;
}

/// The scope of one call or turn: the only place where the fields of its line are collected. Clones
/// share what is counted and noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallScope {
    facts: Arc<Facts>,
    names: Arc<CallNames>,
    trace: Option<TraceContext>,
}

/// The fields of a call's line that describe its request.
#[derive(Debug, Default)]
pub(crate) struct CallFacts {
    pub(crate) method: Option<&'static str>,
    pub(crate) generation: Option<&'static str>,
    pub(crate) request_id: Option<String>,
    pub(crate) trace_id: Option<String>,
}

#[derive(Debug, Default)]
struct Facts {
    call: CallFacts,
    /// `None` until a store has reported anything.
    units: Mutex<Option<Units>>,
    /// The units in the line of the call, once it is written.
    logged_units: OnceLock<Units>,
    /// Whether a call has a line that can say how its turn ended.
    of_call: bool,
    /// `None` once the line of the call is written, or will not be.
    turn: OnceLock<Option<TurnNote>>,
}

/// How a turn ended, for the line of the call that ran it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TurnNote {
    /// The state that the task has now.
    pub(crate) state: Option<&'static str>,
    pub(crate) attempt: u64,
    /// The error code of the failed task.
    pub(crate) error: Option<String>,
    /// Who has to act, or the word for nobody; `None` if the turn has not ended.
    pub(crate) class: Option<&'static str>,
    /// Milliseconds that the turn took.
    pub(crate) ms: u64,
}

/// Capacity units. The smallest unit of DynamoDB is a half, so sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

impl CallScope {
    /// The scope of a call, in which nothing is counted yet.
    pub(crate) fn of_call(trace: Option<TraceContext>, call: CallFacts) -> Self {
        let facts = Facts {
            call,
            of_call: true,
            ..Facts::default()
        };
        Self {
            facts: Arc::new(facts),
            names: Arc::default(),
            trace,
        }
    }

    /// The scope of the running call or turn; a new one outside of both.
    pub(crate) fn current() -> Self {
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// The same scope in another span of the trace.
    pub(crate) fn in_span(&self, trace: Option<TraceContext>) -> Self {
        Self {
            trace,
            ..self.clone()
        }
    }

    /// `future` in this scope.
    pub(crate) fn run<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        let names = Arc::clone(&self.names);
        names.run(CURRENT.scope(self, future))
    }

    /// The trace that the scope belongs to.
    pub(crate) const fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// The units so far; `None` if no store has reported any.
    pub(crate) fn units(&self) -> Option<Units> {
        *lock(&self.facts.units)
    }

    /// The units since the line of the call. `None` if that line is not written yet: then it
    /// will have them.
    pub(crate) fn units_since_log(&self) -> Option<Units> {
        let (logged_units, units) = (self.facts.logged_units.get()?, self.units()?);
        Some(Units {
            read: units.read - logged_units.read,
            write: units.write - logged_units.write,
        })
    }

    /// Leaves `note` to the line of the call. Returns it if no such line follows: then the turn
    /// needs a line of its own.
    pub(crate) fn note_turn(&self, note: TurnNote) -> Result<(), TurnNote> {
        if !self.facts.of_call {
            return Err(note);
        }
        let result = self.facts.turn.set(Some(note));
        result.map_err(Option::unwrap_or_default)
    }

    /// The note and the units for the line of the call. A turn that ends later gets a line of its
    /// own, with the units from now on.
    pub(crate) fn close(&self) -> (Option<&TurnNote>, Option<Units>) {
        let units = self.units();
        // The first line counts: a call has one.
        let _logged = self.facts.logged_units.set(units.unwrap_or_default());
        (self.facts.turn.get_or_init(|| None).as_ref(), units)
    }

    /// Says that the call gets no line. So a turn has one with all units.
    pub(crate) fn without_line(&self) {
        let _logged = self.facts.logged_units.set(Units::default());
        self.close();
    }

    /// The fields of the call's line that describe its request.
    pub(crate) fn facts(&self) -> &CallFacts {
        &self.facts.call
    }

    /// The names for the lines of the call.
    pub(crate) fn names(&self) -> &CallNames {
        &self.names
    }
}

/// Notes the skill of the task that the running call changes.
pub(crate) fn note_skill_of(task: &TaskRecord) {
    if let Some(skill) = task.skill.as_ref() {
        CallNames::note(|names| &names.skill, skill.as_str());
    }
}

/// Adds the capacity of store calls to the running call or turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct CurrentMeter;

impl Meter for CurrentMeter {
    fn add(&self, read: f64, write: f64) {
        // A store call outside of a call, such as one of the sweep, is not counted.
        let _outside = CURRENT.try_with(|scope| {
            let mut units = lock(&scope.facts.units);
            let units = units.get_or_insert_default();
            units.read += read;
            units.write += write;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::events;
    use tracing_subscriber::filter::LevelFilter;

    #[tokio::test]
    async fn units_after_the_line_of_a_call_are_left_for_its_turn() {
        let call = CallScope::default();
        let add = async |write| {
            call.clone()
                .run(async { CurrentMeter.add(0.0, write) })
                .await
        };
        add(2.0).await;
        assert_eq!(call.units_since_log(), None);
        assert!((call.close().1.unwrap().write - 2.0).abs() < 1e-9);
        add(3.0).await;
        assert!((call.units_since_log().unwrap().write - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_turn_has_a_line_of_its_own_unless_a_line_of_a_call_follows() {
        let note = TurnNote {
            state: Some("completed"),
            attempt: 1,
            error: None,
            class: None,
            ms: 3,
        };
        let call = CallScope::of_call(None, CallFacts::default());
        assert_eq!(call.in_span(None).note_turn(note.clone()), Ok(()));
        assert_eq!(call.close().0, Some(&note));
        let logged = CallScope::of_call(None, CallFacts::default());
        assert_eq!(logged.close().0, None);
        let left = CallScope::of_call(None, CallFacts::default());
        left.without_line();
        assert_eq!(left.units_since_log(), left.units());
        for no_line_follows in [logged, left, CallScope::default()] {
            assert_eq!(no_line_follows.note_turn(note.clone()), Err(note.clone()));
        }
    }

    #[tokio::test]
    async fn units_and_turns_go_by_the_line_of_a_call_whoever_reads_it() {
        let off = || {
            let lines = tracing_subscriber::fmt().with_max_level(LevelFilter::OFF);
            tracing::subscriber::set_default(lines.finish())
        };
        let author = || {
            let lines = tracing_subscriber::fmt().with_writer(std::io::sink);
            tracing::subscriber::set_default(lines.finish())
        };
        for reader in [None, Some(&off as &dyn Fn() -> _), Some(&author)] {
            let _guard = reader.map(|subscribe| subscribe());
            let call = CallScope::of_call(TraceContext::new(7, 8), CallFacts::default());
            let turn = call.in_span(TraceContext::new(7, 9));
            let add = async |write| CurrentMeter.add(0.0, write);
            call.clone().run(add(2.0)).await;
            events::call(&call, events::CallEnd::default());
            turn.clone().run(add(3.0)).await;
            assert!((call.units().unwrap().write - 5.0).abs() < 1e-9);
            assert!((turn.units_since_log().unwrap().write - 3.0).abs() < 1e-9);
            assert!(turn.note_turn(TurnNote::default()).is_err());
        }
    }

    #[tokio::test]
    async fn units_belong_to_the_scope_that_runs() {
        let (one, other) = (CallScope::default(), CallScope::default());
        let used = async |read: f64, write: f64| CurrentMeter.add(read, write);
        one.clone().run(used(0.5, 2.0)).await;
        one.clone().run(used(1.0, 0.0)).await;
        other.clone().run(async {}).await;
        used(9.0, 9.0).await;
        let units = one.units().unwrap();
        assert!((units.read - 1.5).abs() < 1e-9, "{units:?}");
        assert!((units.write - 2.0).abs() < 1e-9, "{units:?}");
        assert_eq!(other.units(), None);
    }

    #[tokio::test]
    async fn a_turn_inside_a_call_counts_for_both() {
        let call = CallScope::default();
        let turn = call.in_span(None);
        call.clone()
            .run(async {
                CurrentMeter.add(1.0, 0.0);
                turn.clone().run(async { CurrentMeter.add(0.0, 1.0) }).await;
            })
            .await;
        assert_eq!(call.units(), turn.units());
        assert!((call.units().unwrap().write - 1.0).abs() < 1e-9);
    }
}
