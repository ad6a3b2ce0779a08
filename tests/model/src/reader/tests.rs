//! The model of a stream, without and with planted faults.

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
fn a_resumed_stream_shows_the_events_it_missed() {
    check::holds("stream, cut and resumed", READER);
    check::holds("stream, cut and taken over", TAKEN_OVER);
}

/// A fault, and the property that must notice it.
const PLANTED: &[(Mutant, &str)] = &[
    (Mutant::ShownBeforeCommit, "G7 a stream shows"),
    (Mutant::TailAfterSecondRead, "G7"),
    (Mutant::TailOverItemsOnly, "G7 a poll"),
    (Mutant::NoSeqCheck, "G7 a stream shows"),
    (
        Mutant::ChunksWithoutVersions,
        "G7 a client that saw the end",
    ),
    (Mutant::OtherIncarnationRead, "G7 a stream shows"),
    (Mutant::NewEpochAppends, "G7 a client that saw the end"),
    (Mutant::ResumeShowsLater, "G7 a resume"),
    (Mutant::FencedCommits, "G2"),
    (Mutant::ShownTwiceAfterResume, "G7 a stream shows"),
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
