//! The stream with all its faults, and the faults planted in its rules.

use super::{Mutant, Reader};
use crate::check;

const READER: Reader = Reader {
    crashes: 2,
    glitches: 0,
    cuts: 2,
    chunks: 2,
    mutant: None,
};
const TAKEN_OVER: Reader = Reader {
    glitches: 2,
    chunks: 1,
    ..READER
};

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn a_cut_stream_goes_on_with_what_it_missed() {
    check::holds("stream, cut and resumed", READER);
    check::holds("stream, cut and taken over", TAKEN_OVER);
}

/// A fault, and the promise that has to notice it.
const PLANTED: &[(Mutant, &str)] = &[
    (Mutant::ShownBeforeCommit, "G7 what is shown"),
    (Mutant::TailAfterSecondRead, "G7"),
    (Mutant::TailOverItemsOnly, "G7 a poll"),
    (Mutant::NoSeqCheck, "G7 what is shown"),
    (Mutant::ChunksWithoutVersions, "G7 who saw the end"),
    (Mutant::OtherIncarnationRead, "G7 what is shown"),
    (Mutant::NewEpochAppends, "G7 who saw the end"),
    (Mutant::ResumeTellsLater, "G7 a resume"),
    (Mutant::FencedCommits, "G2"),
    (Mutant::ShownTwiceAfterResume, "G7 what is shown"),
];

#[test]
#[cfg_attr(debug_assertions, ignore = "exhaustive: see tests/run.sh --only model")]
fn every_broken_rule_of_a_stream_is_noticed() {
    for &(mutant, by) in PLANTED {
        check::caught(
            &format!("{mutant:?}"),
            &Reader {
                mutant: Some(mutant),
                ..READER
            },
            by,
        );
    }
}
