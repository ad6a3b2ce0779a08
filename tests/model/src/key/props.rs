//! The properties of an idempotency key.

use super::{At, KeyWorld, Keyed, Kind};
use stateright::Property;

/// One key of a send opens one task, as long as that task exists.
fn one_key_one_task(_: &Keyed, world: &KeyWorld) -> bool {
    let lives = world.tasks.iter().filter(|meta| meta.state.lives());
    lives.count() <= 1
}

/// One key of an answer opens one turn.
fn one_key_one_turn(_: &Keyed, world: &KeyWorld) -> bool {
    world.tasks.iter().all(|meta| meta.answers <= 1)
}

/// No key leads to a task that is gone, and no send is refused because of one.
fn a_key_ends_with_its_task(model: &Keyed, world: &KeyWorld) -> bool {
    let mut calls = model.calls.iter().zip(&world.calls);
    !world.told_dead && calls.all(|(kind, call)| *kind != Kind::Send || call.at != At::Refused)
}

pub(super) fn properties(model: &Keyed) -> Vec<Property<Keyed>> {
    type P = Property<Keyed>;
    let mut all = vec![
        P::always("G4 one key, one task", one_key_one_task),
        P::always("G4 one key, one turn", one_key_one_turn),
        P::always("G4 every caller receives that task", |_, w| !w.told_another),
        P::always(
            "G4 no repeat is refused because of its own request",
            |_, w| !w.refused_for_itself,
        ),
        P::always("G4 a key ends with its task", a_key_ends_with_its_task),
    ];
    if model.mutant.is_none() {
        all.push(P::sometimes(
            "a repeat receives the result of a lost reply",
            |_, w| w.heard_late,
        ));
        let sends = model.calls.iter().filter(|kind| **kind == Kind::Send);
        if model.expiries > 0 && sends.count() > 1 {
            all.push(P::sometimes("a key is taken again", |_, w| w.taken_again));
        }
    }
    all
}
