//! The names that the log lines of the running call or turn have.
//!
//! They are local to a Tokio task, so that skills and models need no parameter for them.

use super::run_trace::RunTrace;
use super::trace::TraceRow;
use serde::Serialize;
use std::future::Future;
use std::sync::{Arc, OnceLock};

tokio::task_local! {
    static CURRENT: Arc<CallNames>;
}

/// The names of one call or turn. Each is set once.
#[derive(Debug, Default)]
pub struct CallNames {
    /// The tenant of the caller.
    pub tenant: OnceLock<String>,
    /// The task that the call makes, reads or changes.
    pub task: OnceLock<String>,
    /// The skill of the task.
    pub skill: OnceLock<String>,
    /// The step of the router that decided.
    pub route: OnceLock<String>,
    /// What records the call; a deployed function has none.
    pub trace: OnceLock<Arc<RunTrace>>,
}

impl CallNames {
    /// The names of the running call or turn; none outside of both.
    #[must_use]
    pub fn current() -> Arc<Self> {
        CURRENT.try_with(Clone::clone).unwrap_or_default()
    }

    /// `future` with these names.
    pub fn run<F: Future>(self: Arc<Self>, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    /// The row of a step of this `kind` with what it is asked; `None` if nobody records it.
    pub fn row_of(kind: &'static str, input: Option<&impl Serialize>) -> Option<Box<TraceRow>> {
        Self::current().trace.get()?;
        let mut row = TraceRow {
            kind,
            ..TraceRow::default()
        };
        if let Some(input) = input {
            row.add("input", input);
        }
        Some(row.into())
    }

    /// Notes a name of the running call. The first note counts. Outside of a call it has no reader.
    pub fn note(name: fn(&Self) -> &OnceLock<String>, text: &str) {
        name(&Self::current()).get_or_init(|| text.to_owned());
    }
}
