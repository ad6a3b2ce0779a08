//! The model with ids made by clients and by the server, and with planted faults.

use super::{Context, Mutant};
use crate::check;

const CLIENT_MADE: Context = Context {
    server_made: false,
    crashes: 2,
    mutant: None,
};
const SERVER_MADE: Context = Context {
    server_made: true,
    ..CLIENT_MADE
};

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn a_context_expires_leaves_a_tombstone_and_begins_anew() {
    check::holds("context made by a client", CLIENT_MADE);
    check::holds("context made by the server", SERVER_MADE);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_of_a_context_is_noticed() {
    for (model, mutant, by) in [
        (CLIENT_MADE, Mutant::ExpiryUnchecked, "G10 no expired"),
        (CLIENT_MADE, Mutant::RefreshUnconditional, "G10 no expired"),
        (CLIENT_MADE, Mutant::RefreshShortens, "G10 an id is new"),
        (CLIENT_MADE, Mutant::NoTombstone, "G10 an id is new"),
        (CLIENT_MADE, Mutant::RemovedAtExpiry, "G10 an id is new"),
        (SERVER_MADE, Mutant::ServerIdMade, "G10 an id is new"),
        (CLIENT_MADE, Mutant::NeverNew, "G10 no living"),
        (CLIENT_MADE, Mutant::StateKept, "G10 no value"),
        (CLIENT_MADE, Mutant::StateVersionUnchecked, "G10 no value"),
        (CLIENT_MADE, Mutant::SweepUnconditional, "G1 a living"),
        (CLIENT_MADE, Mutant::StateNotRefreshed, "G1 a living"),
    ] {
        let name = format!("{mutant:?}");
        let mutant = Some(mutant);
        check::caught(&name, &Context { mutant, ..model }, by);
    }
}
