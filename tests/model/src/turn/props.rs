//! The properties of a turn.

use super::{At, Broken, CallAt, Kind, Lease, Mutant, Scenario, State, Turn, TurnWorld};
use stateright::Property;

/// The tasks of acknowledged calls: each of them has to come to rest.
fn acknowledged(world: &TurnWorld) -> impl Iterator<Item = usize> + '_ {
    let ok = world.calls.iter().filter(|call| call.at == CallAt::Ok);
    ok.map(|call| usize::from(call.task))
}

/// G1: in a quiet world, queued work is at rest without the help of the sweep.
fn queued_work_rests(_: &Turn, world: &TurnWorld) -> bool {
    !world.quiet()
        || acknowledged(world).all(|task| {
            let meta = &world.tasks[task];
            meta.state.at_rest() || !meta.queued || world.record_lost[task]
        })
}

/// G1: in a quiet world, the sweep can still find a task, or all tasks are at rest.
fn nothing_is_stuck(model: &Turn, world: &TurnWorld) -> bool {
    !world.quiet()
        || world.sweep.0 > 0
        || acknowledged(world).all(|task| {
            let ends = world.tasks[task].lease == Lease::Live;
            world.tasks[task].state.at_rest()
                || ends
                || model.sweep_read(&mut { *world }, task).is_some()
        })
}

/// G3: the history has at most one of the continuations of a question.
fn one_continuation_wins(model: &Turn, world: &TurnWorld) -> bool {
    let kinds = model.scenario.calls.iter().enumerate();
    let mut bits = kinds
        .filter(|(_, k)| matches!(k, Kind::Continue { .. }))
        .map(|(i, _)| 1u8 << i);
    let mask = bits.by_ref().fold(0, |mask, bit| mask | bit);
    world
        .tasks
        .iter()
        .all(|meta| (meta.applied & mask).count_ones() <= 1)
        && !world.has_broken(Broken::RefusedForNothing)
}

/// G4: one key opens one task, and every caller receives that task.
fn one_key_one_task(model: &Turn, world: &TurnWorld) -> bool {
    let mut keyed = model
        .scenario
        .calls
        .iter()
        .zip(&world.calls)
        .filter(|(kind, _)| {
            matches!(
                kind,
                Kind::Queued { keyed: true } | Kind::Blocking { keyed: true }
            )
        });
    let tasks = world
        .tasks
        .iter()
        .filter(|meta| meta.state != State::Absent)
        .count();
    keyed.clone().count() < 2
        || (tasks <= 1
            && keyed.all(|(_, call)| call.at != CallAt::Ok || call.task + 1 == world.key))
}

/// G5: after a successful cancel the task stays canceled.
fn a_cancel_stands(model: &Turn, world: &TurnWorld) -> bool {
    model
        .scenario
        .calls
        .iter()
        .zip(&world.calls)
        .all(|(kind, call)| {
            let state = world.tasks[usize::from(call.task)].state;
            *kind != Kind::Cancel || call.at != CallAt::Ok || state == State::Canceled
        })
}

/// G6: a completed task's artifact exists and has the bytes of the committed epoch.
fn artifacts_are_the_committed_bytes(model: &Turn, world: &TurnWorld) -> bool {
    world
        .tasks
        .iter()
        .zip(&world.objects)
        .all(|(meta, objects)| {
            meta.artifact == 0 || objects[model.object_key(meta.artifact)] == meta.artifact
        })
}

/// G14: no skill starts more often than the attempts allow.
fn attempts_are_bounded(model: &Turn, world: &TurnWorld) -> bool {
    world
        .tasks
        .iter()
        .all(|meta| meta.runs <= model.scenario.attempts)
        && !world.has_broken(Broken::FailedEarly)
}

/// G16: a successful call is stored, a refused one is not.
fn answers_agree_with_the_store(model: &Turn, world: &TurnWorld) -> bool {
    model
        .scenario
        .calls
        .iter()
        .zip(&world.calls)
        .enumerate()
        .all(|(i, (kind, call))| {
            let written = world.tasks[usize::from(call.task)].applied & (1 << i) != 0;
            let send = matches!(kind, Kind::Queued { .. } | Kind::Blocking { .. });
            match call.at {
                CallAt::Ok => written || send,
                CallAt::Refused => !written,
                _ => true,
            }
        })
}

fn no_fault(model: &Turn, world: &TurnWorld) -> bool {
    let all = &model.scenario;
    (world.crashes, world.glitches, world.lost) == (all.crashes, all.glitches, all.lost)
}

/// Without a fault at most one skill runs at a time for a task or a key.
fn one_skill_at_a_time(model: &Turn, world: &TurnWorld) -> bool {
    let on = |task: usize| {
        let alive = |run: &&super::Run| run.skill_alive() && usize::from(run.task) == task;
        world.runs().filter(alive).count()
    };
    let deferred = model
        .scenario
        .calls
        .iter()
        .zip(&world.calls)
        .filter(|(kind, call)| {
            let shared = !matches!(kind, Kind::Blocking { keyed: false });
            call.at == CallAt::Deferred && shared
        });
    !no_fault(model, world) || on(0).max(on(1)) + deferred.count() <= 1
}

/// Without a fault a task has at most one message.
fn one_message_at_a_time(model: &Turn, world: &TurnWorld) -> bool {
    let one = |task: usize| {
        let shown = world
            .slots
            .iter()
            .filter(|&&slot| usize::from(slot) == (task + 1) * 2)
            .count();
        let unsent = world.stream[task] - u8::from(usize::from(world.relay) == task + 1);
        shown + usize::from(unsent) <= 1
    };
    // A scenario that begins with a late copy of a message may have two from the start.
    let late = model.scenario.asked;
    late || !no_fault(model, world) || (0..world.tasks.len()).all(one)
}

/// The properties of a scenario. Without a mutant, also the states that must be reachable.
pub(super) fn properties(scenario: &Scenario, mutant: Option<Mutant>) -> Vec<Property<Turn>> {
    type P = Property<Turn>;
    let mut all = vec![
        P::always(
            "G1 queued work comes to rest without the sweep",
            queued_work_rests,
        ),
        P::always("G1 nothing acknowledged is stuck", nothing_is_stuck),
        P::always("G2 a terminal task never changes", |_, w| {
            !w.has_broken(Broken::TerminalChanged)
        }),
        P::always(
            "G3 one continuation wins, the other is refused for it",
            one_continuation_wins,
        ),
        P::always("G4 one key, one task", one_key_one_task),
        P::always("G5 a canceled task stays canceled", a_cancel_stands),
        P::always(
            "G6 artifacts are the committed bytes",
            artifacts_are_the_committed_bytes,
        ),
        P::always(
            "G14 attempts are bounded, and only spent ones fail",
            attempts_are_bounded,
        ),
        P::always(
            "G16 answers agree with the store",
            answers_agree_with_the_store,
        ),
        P::always("a fenced worker changes nothing", |_, w| {
            !w.has_broken(Broken::FencedWrote)
        }),
        P::always("no fault, one skill at a time", one_skill_at_a_time),
        P::always("no fault, one message at a time", one_message_at_a_time),
    ];
    if mutant.is_none() {
        all.extend(seen(scenario));
    }
    all
}

fn seen(scenario: &Scenario) -> Vec<Property<Turn>> {
    type P = Property<Turn>;
    let any = |kind: fn(&Kind) -> bool| scenario.calls.iter().any(kind);
    let mut all = vec![
        P::sometimes("a task completes and its caller knows", |_, w| {
            acknowledged(w).any(|task| w.tasks[task].state == State::Completed)
        }),
        P::sometimes("attempts run out", |_, w| w.tasks[0].state == State::Failed),
        P::sometimes(
            "a zombie is fenced after another completed the task",
            |_, w| {
                let zombie =
                    |run: &super::Run| run.at == At::Fenced && run.epoch < w.tasks[0].epoch;
                w.tasks[0].state == State::Completed && w.runs().any(zombie)
            },
        ),
        P::sometimes("all faults are spent and all is at rest", |_, w| {
            w.quiet() && w.crashes + w.glitches + w.lost == 0 && w.tasks[0].state.terminal()
        }),
    ];
    if scenario.handovers > 0 {
        all.push(P::sometimes(
            "a handed-over task completes in a later epoch",
            |_, w| w.handovers == 0 && w.tasks[0].artifact > 1,
        ));
    }
    if any(|kind| *kind == Kind::Cancel) {
        all.push(P::sometimes(
            "a cancel wins while the skill runs",
            |_, w| w.tasks[0].state == State::Canceled && w.runs().any(super::Run::skill_alive),
        ));
    }
    let continues = |kind: &&Kind| matches!(kind, Kind::Continue { .. });
    if scenario.calls.iter().filter(continues).count() > 1 {
        all.push(P::sometimes(
            "a continuation is refused, another has won",
            |m, w| {
                let calls = m.scenario.calls.iter().zip(&w.calls);
                let ended = |end| {
                    let mut calls = calls.clone();
                    calls.any(|(k, c)| matches!(k, Kind::Continue { .. }) && c.at == end)
                };
                ended(CallAt::Ok) && ended(CallAt::Refused)
            },
        ));
    }
    all
}
