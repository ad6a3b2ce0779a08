//! The properties of push delivery.

use super::*;
use stateright::Property;

pub(super) fn properties(model: &Push) -> Vec<Property<Push>> {
    type P = Property<Push>;
    let mut all = vec![
        P::always(
            "G8 a registered webhook gets every event, without the sweep",
            |_, w| !w.quiet() || w.lost || w.served(),
        ),
        P::always(
            "G8 the sweep can still find the task, or all was delivered",
            |_, w| !w.quiet() || w.open || w.served(),
        ),
        P::always("G8 events are delivered in order", |_, w| !w.out_of_order),
        P::always(
            "G8 one delivery worker at a time calls a webhook",
            |_, w| !w.crossed,
        ),
        P::always("G2 a terminal task never changes", |_, w| {
            !w.terminal_changed
        }),
    ];
    if model.mutant.is_none() {
        all.extend(seen());
    }
    all
}

/// States that must be reachable; otherwise the properties above prove nothing.
fn seen() -> Vec<Property<Push>> {
    type P = Property<Push>;
    vec![
        P::sometimes("registered before the end and served", |_, w| {
            w.config == (true, EVENTS, 1) && w.quiet() && !w.open
        }),
        P::sometimes("registered after the end", |_, w| w.config.2 == EVENTS),
        P::sometimes("tried again after its wait, and served", |_, w| {
            w.failures == 0 && w.wait == Wait::Over && w.quiet() && w.got != 0 && w.served()
        }),
        P::sometimes("taken over from a delivery worker that died", |_, w| {
            w.crashes == 0 && w.lease == FREE && !w.lost && w.quiet() && w.config.2 == 0
        }),
        P::sometimes(
            "all faults spent, a record lost, and still served",
            |_, w| {
                w.lost
                    && w.crashes + w.glitches + w.failures == 0
                    && w.config.2 == 0
                    && w.quiet()
                    && !w.open
                    && w.registrar == Registrar::Acknowledged
            },
        ),
    ]
}
