//! The properties of a context id.

use super::*;
use stateright::Property;

pub(super) fn properties(model: &Context) -> Vec<Property<Context>> {
    type P = Property<Context>;
    let mut all = vec![
        P::always("G10 no expired context continues", |_, w| !w.revived),
        P::always("G10 an id is new only after its tombstone", |_, w| {
            !w.forgotten
        }),
        P::always("G10 no living or free id is refused", |_, w| {
            !w.refused_alive
        }),
        P::always("G10 no value of another context appears", |_, w| {
            !w.foreign_state
        }),
        P::always("G1 a living context keeps its values", |_, w| !w.state_lost),
    ];
    if model.mutant.is_none() {
        all.extend(seen(model.server_made));
    }
    all
}

/// States that must be reachable; otherwise the properties above prove nothing.
fn seen(server_made: bool) -> Vec<Property<Context>> {
    type P = Property<Context>;
    let mut all = vec![
        P::sometimes("a send races expiry and continues", |_, w| {
            let late = |send: &Send| matches!(send, Send::Saw(Some(t), began) if t.lives(*began) && !t.lives(w.now));
            w.sends.iter().any(late)
        }),
        P::sometimes("an expired id is refused", |_, w| {
            w.sends.contains(&Send::Refused) && w.thread.is_some_and(|t| t.noted)
        }),
        P::sometimes("a kept value outlives several refreshes", |_, w| {
            w.thread
                .is_some_and(|t| t.state > 0 && t.version > t.state + 1 && t.lives(w.now))
        }),
    ];
    if !server_made {
        all.push(P::sometimes("an id is new again", |_, w| {
            w.generations == 2 && w.thread.is_some_and(|t| t.state > 0 && t.lives(w.now))
        }));
        all.push(P::sometimes(
            "a new context begins over an old state",
            |_, w| {
                let old = |state: State| w.thread.is_some_and(|t| t.generation > state.generation);
                w.state.is_some_and(old)
            },
        ));
    }
    all
}
