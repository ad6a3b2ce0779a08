//! Names the states of a task in each dialect.

use super::{Binding, Dialect};
use a2a_lambda_model::task::{Generation, TaskState};

/// The name of `state`.
pub(crate) const fn state_name(state: TaskState, dialect: Dialect) -> &'static str {
    match (dialect.generation, dialect.binding, state) {
        (Generation::V10, _, _) => proto(state),
        // The proto of 0.3 spells it with two `L`.
        (Generation::V03, Binding::Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
        (Generation::V03, Binding::Rest, _) => proto(state),
        // A2A 0.1 §6.3: it has neither `auth-required` nor `rejected`.
        (Generation::V01, _, TaskState::AuthRequired) => TaskState::InputRequired.as_str(),
        (Generation::V01, _, TaskState::Rejected) => TaskState::Failed.as_str(),
        (Generation::V03 | Generation::V01, _, _) => state.as_str(),
    }
}

/// The names that the filter of a list accepts. In 0.3 these are those of both bindings, and
/// `CANCELED` with one `L` as in 1.0.
pub(crate) fn state_filter(generation: Generation) -> Vec<(&'static str, TaskState)> {
    let of = |dialect: Dialect| {
        let names = move |state| (state_name(state, dialect), state);
        TaskState::ALL.into_iter().map(names)
    };
    let of_v10 = of(Dialect::rest(Generation::V10));
    if generation == Generation::V10 {
        return of_v10.collect();
    }
    let canceled_names = of_v10.filter(|(_, state)| *state == TaskState::Canceled);
    let of_v03 = of(Dialect::rest(Generation::V03)).chain(canceled_names);
    of_v03
        .chain(of(Dialect::json_rpc(Generation::V03)))
        .collect()
}

const fn proto(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}
