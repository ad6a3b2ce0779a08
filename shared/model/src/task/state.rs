//! The state machine of a task: one pure function.
//!
//! `docs/architecture.md` draws it; a test compares the drawing with this function.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of a task (A2A 1.0 §4.1.3).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Accepted; no turn has started.
    #[default]
    Submitted,
    /// A turn runs.
    Working,
    /// Waits for an answer of the client.
    InputRequired,
    /// Waits for credentials, which the client sends out of band.
    AuthRequired,
    /// Done; terminal.
    Completed,
    /// Ended by an error; terminal.
    Failed,
    /// Ended by the client; terminal.
    Canceled,
    /// Declined by the agent; terminal.
    Rejected,
}

/// An event that can change a task's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskEvent {
    /// A turn starts. (A takeover changes the epoch, not the state.)
    Start,
    /// A turn shows progress: an update, an artifact, a checkpoint.
    Progress,
    /// The turn asks the client.
    AskInput,
    /// The turn needs credentials.
    AskAuth,
    /// The client answered; the turn runs in this process.
    Resume,
    /// The client answered; the turn runs later on a worker.
    Queue,
    /// The turn succeeded.
    Complete,
    /// The turn or the platform failed.
    Fail,
    /// The client canceled the task.
    Cancel,
    /// The agent rejected the task.
    Reject,
}

/// An event that a state does not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a task that is {state} does not accept {event:?}")]
pub struct TransitionError {
    /// The state the task is in.
    pub state: TaskState,
    /// The event that the state does not accept.
    pub event: TaskEvent,
}

impl TransitionError {
    /// Whether the event has already had its effect. Then an at-least-once worker
    /// repeats it, which is not an error.
    #[must_use]
    pub const fn is_repeat(self) -> bool {
        matches!(
            (self.state, self.event),
            (TaskState::Completed, TaskEvent::Complete)
                | (TaskState::Failed, TaskEvent::Fail)
                | (TaskState::Canceled, TaskEvent::Cancel)
                | (TaskState::Rejected, TaskEvent::Reject)
                | (TaskState::InputRequired, TaskEvent::AskInput)
                | (TaskState::AuthRequired, TaskEvent::AskAuth)
        )
    }
}

impl TaskState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::AuthRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
    ];

    /// The state after `event`.
    ///
    /// # Errors
    /// [`TransitionError`] when this state does not accept the event. A
    /// terminal state accepts none.
    pub const fn apply(self, event: TaskEvent) -> Result<Self, TransitionError> {
        use TaskEvent as E;
        Ok(match (self, event) {
            (Self::Submitted, E::Start) => Self::Working,
            (Self::Working, E::Progress) => Self::Working,
            (Self::Submitted | Self::Working, E::Reject) => Self::Rejected,
            (Self::Working, E::AskInput) => Self::InputRequired,
            (Self::Working, E::AskAuth) => Self::AuthRequired,
            (Self::InputRequired | Self::AuthRequired, E::Resume) => Self::Working,
            (Self::InputRequired | Self::AuthRequired, E::Queue) => Self::Submitted,
            (Self::Working, E::Complete) => Self::Completed,
            (state, E::Fail) if !state.is_terminal() => Self::Failed,
            (state, E::Cancel) if !state.is_terminal() => Self::Canceled,
            (state, event) => return Err(TransitionError { state, event }),
        })
    }

    /// Whether no event can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Whether the task waits for its client.
    #[must_use]
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Whether no turn runs or waits to run: terminal or interrupted.
    #[must_use]
    pub const fn is_at_rest(self) -> bool {
        self.is_terminal() || self.is_interrupted()
    }

    /// The state's name as in A2A 0.3, which the stored form uses too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Rejected => "rejected",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TaskEvent {
    /// Every event.
    pub const ALL: [Self; 10] = [
        Self::Start,
        Self::Progress,
        Self::AskInput,
        Self::AskAuth,
        Self::Resume,
        Self::Queue,
        Self::Complete,
        Self::Fail,
        Self::Cancel,
        Self::Reject,
    ];
}

#[cfg(test)]
mod tests {
    use super::{TaskEvent, TaskState, TransitionError};
    use a2a_lambda_rows::each_row;
    use proptest::prelude::*;

    #[test]
    fn the_state_drawing_in_the_architecture_matches_the_function() {
        let document = include_str!("../../../../docs/architecture.md");
        let drawn: std::collections::BTreeSet<String> = document
            .lines()
            .map(str::trim)
            .filter(|line| line.contains(" --> ") && line.contains(':') && !line.contains("[*]"))
            .map(str::to_owned)
            .collect();
        let mut known = std::collections::BTreeSet::new();
        for state in TaskState::ALL {
            for event in TaskEvent::ALL {
                if let Ok(next) = state.apply(event) {
                    known.insert(format!(
                        "{} --> {}: {event:?}",
                        state.as_str().replace('-', "_"),
                        next.as_str().replace('-', "_"),
                    ));
                }
            }
        }
        assert_eq!(drawn, known);
    }

    #[test]
    fn a_terminal_task_accepts_no_event() {
        let rows = TaskState::ALL.into_iter().filter(|s| s.is_terminal());
        each_row(rows, |state| {
            each_row(TaskEvent::ALL, |event| {
                assert_eq!(state.apply(event), Err(TransitionError { state, event }));
            });
        });
    }

    #[test]
    fn an_open_task_can_always_be_ended() {
        for state in TaskState::ALL.into_iter().filter(|s| !s.is_terminal()) {
            assert_eq!(state.apply(TaskEvent::Cancel), Ok(TaskState::Canceled));
            assert_eq!(state.apply(TaskEvent::Fail), Ok(TaskState::Failed));
        }
    }

    #[test]
    fn a_late_repeat_differs_from_a_wrong_event() {
        let repeat = TaskState::Completed.apply(TaskEvent::Complete).unwrap_err();
        assert!(repeat.is_repeat());
        let wrong = TaskState::Completed.apply(TaskEvent::Cancel).unwrap_err();
        assert!(!wrong.is_repeat());
    }

    proptest! {
        #[test]
        fn no_sequence_of_events_leaves_a_terminal_state(events in prop::collection::vec(0usize..10, 0..40)) {
            let mut state = TaskState::Submitted;
            let mut ended = None;
            for event in events {
                if let Ok(next) = state.apply(TaskEvent::ALL[event]) {
                    prop_assert_eq!(ended, None);
                    state = next;
                }
                if state.is_terminal() {
                    ended = Some(state);
                }
            }
            if let Some(end) = ended {
                prop_assert_eq!(end, state);
            }
        }
    }
}
