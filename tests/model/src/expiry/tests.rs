//! The model of one task id, without and with planted faults.

use super::{Expiry, Mutant};
use crate::check;

const EXPIRY: Expiry = Expiry {
    deletions: 0,
    crashes: 2,
    glitches: 2,
    mutant: None,
};
/// With a client that deletes its task and sends the same id again.
const DELETION: Expiry = Expiry {
    deletions: 1,
    crashes: 1,
    glitches: 1,
    mutant: None,
};

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn tasks_at_rest_expire_and_running_tasks_do_not() {
    check::holds("expiry", EXPIRY);
    check::holds("deletion", DELETION);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_of_expiry_is_noticed() {
    for (mutant, by) in [
        (Mutant::ReadUnchecked, "G10 nothing expired is shown"),
        (Mutant::ContinueUnchecked, "G10 nothing expired is revived"),
        (Mutant::CancelUnchecked, "G10 nothing expired is revived"),
        (Mutant::CreateOverLiving, "G10 nothing expired is revived"),
        (Mutant::AppliedToRunningWork, "G1 running work"),
        (Mutant::NoRenewal, "G1 running work"),
        (Mutant::FinalKeepsExpiry, "G1 a task at rest"),
        (Mutant::OtherIncarnationRead, "G10 no child"),
        (Mutant::SameIncarnation, "G10 no child"),
        (Mutant::IncarnationIgnored, "G2 no worker of an older task"),
    ] {
        check::caught(
            &format!("{mutant:?}"),
            &Expiry {
                mutant: Some(mutant),
                ..if mutant == Mutant::IncarnationIgnored {
                    DELETION
                } else {
                    EXPIRY
                }
            },
            by,
        );
    }
}
