//! The properties of thread state.

use super::*;
use stateright::Property;

pub(super) fn properties(model: &Threads) -> Vec<Property<Threads>> {
    type P = Property<Threads>;
    let mut all = vec![
        P::always(
            "the thread has the changes of completed turns, and no others",
            |_, w| {
                let Some(ops) = w.ops() else { return true };
                w.tasks
                    .iter()
                    .enumerate()
                    .all(|(t, task)| (ops >> t & 1 == 1) == (task.state == State::Completed))
            },
        ),
        P::always("G6 the thread's object exists", |_, w| w.ops().is_some()),
        P::always("G16 a reported result agrees with the store", |_, w| {
            !w.doubled
        }),
        P::always("a skill starts once per claim", |_, w| {
            w.tasks.iter().zip(&w.starts).all(|(task, starts)| {
                let cancel = u8::from(task.state == State::Canceled);
                *starts <= task.epoch - cancel
            })
        }),
        P::always("a fenced worker changes nothing", |_, w| {
            w.tasks
                .iter()
                .all(|task| task.wid == 0 || task.wid == task.epoch)
        }),
    ];
    if model.mutant.is_none() {
        all.extend(seen());
    }
    all
}

/// States that must be reachable; otherwise the properties above prove nothing.
fn seen() -> Vec<Property<Threads>> {
    type P = Property<Threads>;
    vec![
        P::sometimes("both turns end and both changes are in", |_, w| {
            w.ops() == Some(3) && w.tasks.iter().all(|task| task.epoch == 1)
        }),
        P::sometimes("changes are applied again to a fresh state", |_, w| {
            w.workers
                .iter()
                .flatten()
                .any(|worker| worker.tries > 0 && worker.at == At::Stored)
        }),
        P::sometimes("a cancelled turn leaves the thread alone", |_, w| {
            w.cancels == 0 && w.ops() == Some(1) && w.tasks[1].state == State::Canceled
        }),
        P::sometimes("all faults are spent and both changes are in", |_, w| {
            w.crashes + w.glitches + w.lost == 0 && w.ops() == Some(3)
        }),
    ]
}
