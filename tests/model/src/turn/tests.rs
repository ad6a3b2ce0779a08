//! The scenarios of a turn, without and with planted faults.

use super::{Kind, Mutant, Scenario, Turn};
use crate::check;

const QUEUED: Scenario = Scenario {
    calls: &[Kind::Queued { keyed: false }, Kind::Cancel],
    crashes: 2,
    glitches: 2,
    lost: 0,
    handovers: 1,
    attempts: 3,
    asks: false,
    asked: false,
    sweep: false,
    aging: false,
};
const KEYED: Scenario = Scenario {
    calls: &[Kind::Queued { keyed: true }, Kind::Queued { keyed: true }],
    lost: 1,
    ..QUEUED
};
/// From the first send to the answer to a question.
const CONTINUED: Scenario = Scenario {
    calls: &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: false },
    ],
    handovers: 0,
    asks: true,
    ..QUEUED
};
const CONTINUED_TWICE: Scenario = Scenario {
    calls: &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: false },
        Kind::Continue { inline: true },
    ],
    attempts: 2,
    handovers: 0,
    asks: true,
    asked: true,
    sweep: true,
    ..QUEUED
};
const CONTINUED_UNHEARD: Scenario = Scenario {
    calls: &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: false },
        Kind::Continue { inline: false },
    ],
    lost: 1,
    sweep: false,
    ..CONTINUED_TWICE
};
const CONTINUED_CANCELLED: Scenario = Scenario {
    calls: &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: true },
        Kind::Cancel,
    ],
    ..CONTINUED_TWICE
};
/// An answer runs in its call, while the worker that asked has not heard that its question
/// is stored.
const ANSWERED_INLINE: Scenario = Scenario {
    calls: &[
        Kind::Queued { keyed: false },
        Kind::Continue { inline: true },
    ],
    crashes: 1,
    glitches: 1,
    lost: 1,
    attempts: 2,
    asks: true,
    sweep: true,
    ..QUEUED
};
const INLINE: Scenario = Scenario {
    calls: &[Kind::Blocking { keyed: false }],
    sweep: true,
    aging: true,
    ..QUEUED
};
const INLINE_CANCELLED: Scenario = Scenario {
    calls: &[Kind::Blocking { keyed: false }, Kind::Cancel],
    handovers: 0,
    sweep: true,
    ..QUEUED
};

const KEYED_BLOCKING: Scenario = Scenario {
    calls: &[
        Kind::Blocking { keyed: true },
        Kind::Blocking { keyed: true },
    ],
    ..QUEUED
};
const QUEUED_SWEPT: Scenario = Scenario {
    sweep: true,
    ..QUEUED
};
const QUEUED_TWO_ATTEMPTS: Scenario = Scenario {
    attempts: 2,
    ..QUEUED
};

fn holds(name: &str, scenario: Scenario) {
    check::holds(
        name,
        Turn {
            scenario,
            mutant: None,
        },
    );
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn a_queued_task_comes_to_rest_despite_any_crash() {
    holds("queued, cancelled", QUEUED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn two_sends_with_one_key_open_one_task() {
    holds("sent twice under a key", KEYED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn an_answered_question_comes_to_rest() {
    holds("asked, continued", CONTINUED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn of_two_continuations_one_wins() {
    holds("continued twice, unheard", CONTINUED_UNHEARD);
    holds("continued twice", CONTINUED_TWICE);
    holds("continued and cancelled", CONTINUED_CANCELLED);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn an_inline_answer_is_not_ended_by_the_earlier_turn() {
    holds("asked unheard, answered", ANSWERED_INLINE);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn an_inline_turn_survives_the_death_of_its_call() {
    holds("blocking, handed over", INLINE);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn a_cancel_ends_an_inline_turn() {
    holds("blocking, cancelled", INLINE_CANCELLED);
}

/// A fault, the scenario it is planted in, and the property that must notice it.
const PLANTED: &[(Mutant, Scenario, &str)] = &[
    (Mutant::FinalWriteWithoutCondition, QUEUED, "G2"),
    (Mutant::FinalWriteWithoutEpoch, QUEUED, "a fenced worker"),
    (Mutant::CancelReadThenWrite, QUEUED, "G2"),
    (Mutant::KeyReadThenWrite, KEYED, "G4"),
    (Mutant::MessageDeletedBeforeFinalWrite, QUEUED, "G1"),
    (Mutant::ContinueCheckThenAct, CONTINUED_TWICE, "G3"),
    (Mutant::MessageDroppedOnLiveLease, QUEUED, "G1"),
    (Mutant::WriteThenEnqueue, KEYED, "G1"),
    (Mutant::MetaBeforeObject, QUEUED, "G6"),
    (Mutant::FencedWorkerDeletes, QUEUED, "G1"),
    (Mutant::OneObjectKey, QUEUED, "G6"),
    (Mutant::DeleteByTask, QUEUED, "G1"),
    (
        Mutant::ContinuationDeferred,
        CONTINUED_TWICE,
        "no fault, one skill",
    ),
    (
        Mutant::KeyedSendDeferred,
        KEYED_BLOCKING,
        "no fault, one skill",
    ),
    (Mutant::WriteIdIgnored, CONTINUED_UNHEARD, "G16"),
    (Mutant::WriteIdLatestOnly, CONTINUED_UNHEARD, "G16"),
    (Mutant::ThrottleIsConflict, CONTINUED_TWICE, "G3"),
    (Mutant::RelayIgnoresFailed, QUEUED, "G1"),
    (Mutant::RelayDropsRepeats, QUEUED, "G1"),
    (Mutant::HeartbeatWithoutCondition, QUEUED, "G2"),
    (Mutant::SweepWithoutCondition, INLINE, "G2"),
    (Mutant::SweepByAge, QUEUED_SWEPT, "no fault, one message"),
    (Mutant::SweepFailsByAge, QUEUED_SWEPT, "G14"),
    (Mutant::HandOverWithoutDispatch, QUEUED, "G1"),
    (Mutant::HandOverBeforeDrop, QUEUED, "no fault, one skill"),
    (Mutant::AttemptNotCounted, QUEUED_TWO_ATTEMPTS, "G14"),
    (
        Mutant::EpochKeptByResume,
        ANSWERED_INLINE,
        "a fenced worker",
    ),
];

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_is_noticed() {
    for &(mutant, scenario, by) in PLANTED {
        check::caught(
            &format!("{mutant:?}"),
            &Turn {
                scenario,
                mutant: Some(mutant),
            },
            by,
        );
    }
}
