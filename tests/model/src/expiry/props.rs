//! The properties of expiry.

use super::*;
use stateright::Property;

pub(super) fn properties(model: &Expiry) -> Vec<Property<Expiry>> {
    type P = Property<Expiry>;
    let mut all = vec![
        P::always("G10 nothing expired is shown", |_, w| !w.expired_shown),
        P::always(
            "G10 nothing expired is revived, nothing living replaced",
            |_, w| !w.revived,
        ),
        P::always("G10 no child of an older task appears", |_, w| {
            !w.old_child_shown
        }),
        P::always("G2 no worker of an older task writes", |_, w| {
            !w.foreign_write
        }),
        P::always("G1 running work does not expire", |_, w| !w.work_lost),
        P::always("G1 a task at rest keeps its whole lifetime", |_, w| {
            !w.meta.at_rest() || w.meta.deleted || w.meta.expires_at >= w.meta.rested + TTL
        }),
    ];
    if model.mutant.is_none() {
        all.extend(seen());
    }
    if model.mutant.is_none() && model.deletions > 0 {
        all.push(P::sometimes(
            "an id is used again while a worker of the deleted task runs",
            |_, w| {
                let old = |it: &(u8, u8)| it.1 < w.meta.incarnation;
                w.deletions == 0 && w.now < TTL && w.workers.iter().flatten().any(old)
            },
        ));
    }
    all
}

/// States that must be reachable; otherwise the properties above prove nothing.
fn seen() -> Vec<Property<Expiry>> {
    type P = Property<Expiry>;
    vec![
        P::sometimes("work ends after its expiry had passed", |_, w| {
            w.meta.open() && w.meta.expires_at < w.now
        }),
        P::sometimes("a continuation races expiry and loses", |_, w| {
            matches!(w.continuation, Call::Checked(..)) && w.meta.expired(w.now)
        }),
        P::sometimes("all faults are spent and the task completes", |_, w| {
            w.crashes + w.glitches == 0 && w.meta.state == State::Completed
        }),
    ]
}
