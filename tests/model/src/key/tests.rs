//! The scenarios of a key, without and with planted faults.

use super::{Keyed, Kind, Mutant};
use crate::check;

/// One client repeats its send until it gets a reply, or four clients send at the same time.
const SENT: Keyed = Keyed {
    calls: &[Kind::Send, Kind::Send, Kind::Send, Kind::Send],
    crashes: 2,
    lost: 1,
    expiries: 2,
    mutant: None,
};
const ANSWERED: Keyed = Keyed {
    calls: &[Kind::Send, Kind::Answer, Kind::Answer, Kind::Answer],
    expiries: 1,
    ..SENT
};

#[test]
fn repeated_sends_under_a_key_open_one_task() {
    check::holds("sent again under a key", SENT);
}

#[test]
fn repeated_answers_under_a_key_open_one_turn() {
    check::holds("answered again under a key", ANSWERED);
}

/// A fault, the scenario it is planted in, and the property that must notice it.
const PLANTED: &[(Mutant, Keyed, &str)] = &[
    (Mutant::KeyAfterCreate, SENT, "G4 one key, one task"),
    (Mutant::KeyAfterAnswer, ANSWERED, "G4"),
    (Mutant::CreateUnchecked, SENT, "G4 one key, one task"),
    (Mutant::AnswerWithoutKey, ANSWERED, "G4"),
    (Mutant::LookedUpOnce, ANSWERED, "G4 no repeat"),
    (Mutant::KeyOutlivesTask, SENT, "G4 a key ends"),
    (Mutant::ReplacedUnchecked, SENT, "G4 one key, one task"),
];

#[test]
fn every_broken_rule_of_keys_is_noticed() {
    for &(mutant, scenario, by) in PLANTED {
        let model = Keyed {
            mutant: Some(mutant),
            ..scenario
        };
        check::caught(&format!("{mutant:?}"), &model, by);
    }
}
